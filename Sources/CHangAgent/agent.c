#include "hck_agent.h"
