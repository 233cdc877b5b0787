import HangReport

/// The words about the command line itself.
enum Help {
  static let version = HangReport.Tool.current.version

  /// Printed below what is wrong with a command line.
  static let usage = """
    usage: hangcheck [run] [options] [--] program [argument…]
           hangcheck attach [options] PID
           hangcheck core [options] CORE [EXECUTABLE]
           hangcheck report [options] FILE
           hangcheck explain KIND
    Try hangcheck --help.

    """

  static let full = """
    usage: hangcheck [run] [options] [--] program [argument…]  watch an unmodified program
           hangcheck attach [options] PID                      why a running process hangs
           hangcheck core [options] CORE [EXECUTABLE]          why the process of a core file hung
           hangcheck report [options] FILE                     render a saved JSON report
           hangcheck explain KIND                              what a finding means, how to fix it

    hangcheck runs a program as it is and says why it hangs: which threads, which locks, who
    holds what since when, and where. The program keeps its streams, terminal, signals and
    exit status. A first word that is no subcommand is the program; what follows the program
    belongs to it.

    Reports
      --format text|json        how a report is rendered (text); html, sarif, dot, svg and
                                markdown are not in this version
      --output FILE             where it goes (run: stderr, else stdout); - is stdout
      --log FILE                append each report as one JSON line, as it happens
      --color auto|always|never (auto; NO_COLOR is honoured)
      --quiet                   say nothing but findings
      --verbose                 say at the end what was watched, and below each finding the rule
                                that would suppress it

    What is reported
      --wait-threshold DURATION       one long wait (10s)
      --stacks full|site|none         how much of each acquisition's stack is kept (full)
      --no-follow                     leave child processes alone
      --predict on|off                lock orders that could deadlock and did not (on)
      --predict-semaphores            those over semaphores made with 1 as well
      --confirm                       run it again until each of them happens, without its streams
      --steer PLAN                    hold threads back in this run, as --confirm has shown
      --suppressions FILE             rules, one a line, for what does not count:
                                      kind:deadlock symbol:"Cache.*" until:2027-01-31; conditions
                                      on kind, symbol, file, image, resource, fingerprint
      --baseline FILE                 what an earlier JSON report or log has does not count
      --inversion-threshold DURATION  an urgent thread that waits for a less urgent one (100ms)
      --hang-threshold DURATION       the main run loop, or the main queue, stands still (250ms)

    Of attach, which stops a process for some milliseconds and leaves it as it was
      --no-stop                 read /proc alone: no stacks of threads that run
      --watch SECONDS           look again until something is wrong or the time is up
      --all                     instead of PID: every process of this user; lists those that hang

    What is done
      --on-deadlock auto|terminate|core|continue
                          after a certain deadlock was reported (auto: end the program when its
                          main thread is in the deadlock or stuck behind it)
      --timeout DURATION  end the program after that long; what hangs by then is reported first
      --fail-on error|warning|note|never   which findings make the exit status 66 (error)
      --help, --version         (--hang-threshold is for the libraries)

    Durations: 50ms, 2s, 1m. HANGCHECK_OPTIONS holds the same options without their dashes
    (wait-threshold=5s log=/tmp/hangs.jsonl); the command line wins.

    The agent, libHangAgent.so, is looked for beside hangcheck, in ../lib/hangcheck and in ../lib
    from there; HANGCHECK_AGENT names another one. Without one nothing is started (69). A program
    that it cannot enter (static, setuid, 32-bit, not glibc's) runs all the same, and it is said.

    Exit status: the program's own (128+N for signal N), or 0; 66 a finding of --fail-on;
    64 a bad command line or unwritable output; 65 an unreadable input; 69 nothing can be
    inspected; 124 ended by --timeout; 126, 127 the program cannot be executed, is not found.

    """
}
