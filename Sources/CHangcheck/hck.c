#include "hck.h"
