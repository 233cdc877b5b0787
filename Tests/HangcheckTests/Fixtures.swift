import Foundation
import Glibc
import ProcessInspector
import Testing

/// A folder that goes with the test.
final class Scratch: Sendable {
  let path: String

  init() throws {
    path = "/tmp/hangcheck-test-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func write(_ name: String, _ text: String, mode: UInt32) throws {
    try write(name, bytes: Array(text.utf8), mode: mode)
  }

  /// Another process writes it: while this one had it open, a child that is just being started by a
  /// test beside would have it open too, and it could not be executed.
  func write(_ name: String, bytes: [UInt8], mode: UInt32) throws {
    let file = path + "/" + name
    let result = try Run("/bin/sh", ["-c", "cat >\"$0\"", file], bytes: bytes).wait()
    #expect(result.status == 0)
    #expect(chmod(file, mode) == 0)
  }

  func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(
      atPath: path + "/" + name, withIntermediateDirectories: true)
  }

  func text(_ name: String) throws -> String {
    String(decoding: try Data(contentsOf: URL(fileURLWithPath: path + "/" + name)), as: UTF8.self)
  }
}

/// What is compiled once for all tests.
enum Fixture {
  /// The tool beside the test bundle.
  static var hangcheck: String {
    let bundle = Files.resolved("/proc/self/exe") ?? ""
    return (bundle.split(separator: "/").dropLast().map { "/" + $0 }.joined()) + "/hangcheck"
  }

  private static let built = Result { try Builds() }

  /// A library that does nothing, in place of the agent.
  static func agent() throws -> String { try built.get().folder.path + "/agent.so" }
  static func program(_ name: String) throws -> String { try built.get().folder.path + "/" + name }

  private struct Builds: Sendable {
    let folder: Scratch
    init() throws {
      folder = try Scratch()
      removeAtExit(folder.path)
      try compile("agent.so", "int hck_test_agent;", ["-shared", "-fPIC"])
      try compile("static", "int main(void) { return 9; }", ["-static"])
      // What the program finds of what it inherits: descriptors, mask, ignored signals, and so on.
      try compile("inherits", Self.inherits, [])
    }

    private func compile(_ name: String, _ source: String, _ flags: [String]) throws {
      try folder.write(name + ".c", source, mode: 0o644)
      let result = try Run.program(
        "/usr/bin/env",
        ["clang", "-O1", "-w"] + flags + [
          "-o", folder.path + "/" + name, folder.path + "/\(name).c",
        ])
      #expect(result.status == 0, "\(result.errors)")
    }

    private static let inherits = #"""
      #define _GNU_SOURCE
      #include <fcntl.h>
      #include <signal.h>
      #include <stdio.h>
      #include <sys/resource.h>
      #include <sys/stat.h>
      #include <unistd.h>
      int main(int argc, char **argv) {
        int low = open(argv[1], O_WRONLY | O_CREAT, 0600);
        int mine = fcntl(low, F_DUPFD, 99);
        close(low);
        FILE *out = fdopen(mine, "w");
        for (int fd = 0; fd < 100; fd++)
          if (fd != mine) fprintf(out, fcntl(fd, F_GETFD) < 0 ? "-" : "+");
        sigset_t mask;
        sigprocmask(SIG_BLOCK, NULL, &mask);
        fprintf(out, "\n");
        for (int s = 1; s < 65; s++) fprintf(out, "%d", sigismember(&mask, s));
        fprintf(out, "\n");
        for (int s = 1; s < 65; s++) {
          struct sigaction a = {0};
          sigaction(s, NULL, &a);
          fprintf(out, "%c", a.sa_handler == SIG_IGN ? 'i' : a.sa_handler == SIG_DFL ? 'd' : 'h');
        }
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        char cwd[4096];
        fprintf(out, "\n%d %d %s %o %lu %d\n", getpgrp() == getpid(), getsid(0) == getpid(),
                getcwd(cwd, sizeof cwd), umask(0), limit.rlim_cur, nice(0));
        fclose(out);
        return 0;
      }
      """#
  }
}

/// Removes the folder of the fixtures when the tests end.
private func removeAtExit(_ path: String) {
  builtFolder = strdup(path)
  atexit {
    if let builtFolder { try? FileManager.default.removeItem(atPath: String(cString: builtFolder)) }
  }
}

// Written once, before the handler that reads it is registered.
nonisolated(unsafe) private var builtFolder: UnsafeMutablePointer<CChar>?
