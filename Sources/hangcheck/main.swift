import Glibc
import ProcessInspector

// Before anything is opened: descriptors 0 to 2 that were inherited closed are to stay free for the
// program, and hangcheck's own must not land on them.
StandardStreams.hold()
exit(Tool.main(CommandLine.arguments))
