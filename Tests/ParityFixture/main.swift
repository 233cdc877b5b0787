// The files that say what the drop-ins must be able to do, compiled for the originals.
allParity()
