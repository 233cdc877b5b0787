import Foundation
import HangReport
import Testing

/// Programs that other people wrote, and shells that start them: nothing is reported, and what they say
/// and how they end is what it is without hangcheck.
@Suite("Real programs") struct RealProgramTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    /// What must be there for it to be tried.
    var needs: [String]
    /// A source of Tests/Fixtures whose program the script finds as $2.
    var source: String?
    /// Run by bash in a fresh folder.
    var script: String
    /// False where what it says has times in it.
    var isSameEachTime = true
    var testDescription: String { name }
  }

  static let cases = [
    Case(
      name: "git", needs: ["git"],
      script: """
        export HOME=$PWD GIT_AUTHOR_DATE=@0 GIT_COMMITTER_DATE=@0
        git init -q -b main r && cd r && git config user.name n && git config user.email e@e
        for i in 1 2 3 4 5; do echo $i > f$i; git add .; git commit -qm "commit $i"; done
        git gc -q --aggressive && git repack -adq --threads=2 && git fsck --no-progress
        git log --format='%h %s' && git grep -n 3 && git clone -q . ../copy && ls ../copy
        """),
    Case(
      name: "bash with a pipeline and a background job", needs: [],
      script: """
        trap 'echo over' EXIT
        seq 10000 | grep 7 | sort -n --parallel=2 | tail -n 3
        (sleep 0.2; echo late) & echo early; wait $!; echo $?
        cat <(echo one) <(echo two); set -o pipefail; false | true; echo $?
        timeout 0.1 sleep 5; echo $?
        exit 9
        """),
    Case(
      name: "sort and tar", needs: ["tar"],
      script: """
        seq 300000 | awk '{ print ($1 * 7919) % 300007 }' > n
        sort --parallel=4 -S 1M -n n | cksum; tar c n | cksum | wc -l; ls | xargs -P 4 -n 1 cksum
        """),
    Case(
      name: "python3 with threads", needs: ["python3"],
      script: """
        python3 - <<'E'
        import threading, subprocess, queue, multiprocessing
        from concurrent.futures import ThreadPoolExecutor
        lock, again, total = threading.Lock(), threading.RLock(), [0]
        def add(n):
            for _ in range(200):
                with lock:
                    with again:
                        with again: total[0] += n
            return n
        with ThreadPoolExecutor(8) as pool: print(sum(pool.map(add, range(50))), total[0])
        q = queue.Queue()
        t = threading.Thread(target=lambda: [q.put(i) for i in range(1000)]); t.start(); t.join()
        print(sum(q.get() for _ in range(1000)), lock.acquire(timeout=0.1), lock.acquire(timeout=0.1))
        print(subprocess.run(['sh', '-c', 'echo child; exit 3'], capture_output=True))
        done = threading.Event(); threading.Timer(0.2, done.set).start(); print(done.wait(5))
        def work(x): return x * x
        with multiprocessing.get_context('fork').Pool(3) as p: print(p.map(abs, range(-5, 5)))
        E
        """),
    Case(
      name: "python3's own tests of its queues", needs: ["python3"],
      script: """
        if python3 -c 'import test.test_queue' 2>/dev/null; then
          python3 -m unittest test.test_queue 2>&1 | sed -E 's/ in [0-9.]+s//'
        else
          python3 - <<'E'
        import queue, threading
        for kind in queue.Queue, queue.LifoQueue, queue.PriorityQueue, queue.SimpleQueue:
            full, total = kind(3) if kind is not queue.SimpleQueue else kind(), []
            def take():
                while (item := full.get()) >= 0: total.append(item)
            threads = [threading.Thread(target=take) for _ in range(4)]
            for t in threads: t.start()
            for i in range(2000): full.put(i)
            for t in threads: full.put(-1) if kind is queue.Queue else None
            if kind is not queue.Queue:
                while not full.empty(): pass
                for t in threads: full.put(-1)
            for t in threads: t.join()
            print(kind.__name__, sum(total))
        E
        fi
        """),
    Case(
      name: "sourcekit-lsp answers", needs: ["sourcekit-lsp", "python3"],
      script: """
        export HOME=$PWD
        echo 'let answer = 42' > main.swift
        python3 - <<'E'
        import json, os, subprocess
        server = subprocess.Popen(['sourcekit-lsp'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
        def send(**message):
            body = json.dumps({'jsonrpc': '2.0', **message}).encode()
            server.stdin.write(b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)
            server.stdin.flush()
        def answer(number):
            while True:
                size = 0
                while (line := server.stdout.readline().strip()):
                    if line.lower().startswith(b'content-length:'): size = int(line.split(b':')[1])
                message = json.loads(server.stdout.read(size))
                if message.get('id') == number and 'method' not in message: return message
        here = 'file://' + os.getcwd()
        send(id=1, method='initialize', params={'processId': None, 'rootUri': here, 'capabilities': {}})
        print(sorted(answer(1)['result']['capabilities']))
        send(method='initialized', params={})
        send(id=2, method='shutdown')
        print(answer(2).get('result'))
        send(method='exit')
        print(server.wait())
        E
        """),
    Case(
      name: "URLSession and a local server", needs: ["python3"], source: "client.swift",
      script: """
        mkdir files && cd files
        for i in 0 1 2 3 4 5 6 7; do head -c $((i * 100)) /dev/zero > file-$i; done
        head -c 3000000 /dev/zero > large
        : > ../log
        python3 -u -m http.server --bind 127.0.0.1 0 > ../log 2>&1 &
        for ((i = 0; i < 300; i++)); do grep -q port ../log && break; sleep 0.05; done
        "$2" $(sed -nE 's/.* port ([0-9]+) .*/\\1/p' ../log); echo $?
        kill $!; wait $! 2>/dev/null; true
        """),
    Case(
      name: "make with jobs", needs: ["make"],
      script: """
        printf 'all: a b c\\na b c:\\n\\t@sleep 0.1; echo done > $@\\n' > Makefile
        make -s -j3; cat a b c; make -s missing; echo $?
        """),
    Case(
      name: "swift build and swift test of a small package", needs: ["swift"],
      script: """
        set -e
        mkdir small && cd small && swift package init --type library --name small > /dev/null
        swift build 2>&1 && swift test 2>&1
        """, isSameEachTime: false),
  ]

  @Test("stay as they are", arguments: cases)
  func same(_ item: Case) async throws {
    for program in item.needs where try !Self.isThere(program) { return }
    var program = ""
    if let source = item.source {
      let file = Fixture.folder.appending(path: source)
      program = try await Builder.shared.program(file, variant: "debug").path
    }
    let watched = try await Self.inFolder { [program] folder in
      try Watched.run(["--timeout", "240s"], Self.command(item, folder, program), limit: 280)
    }
    #expect(watched.unreadable == nil)
    #expect(watched.loud.isEmpty, "\(watched.loud.map(\.message))")
    #expect(!watched.outcome.leftOvers)
    guard item.isSameEachTime else {
      #expect(watched.outcome.status == .exited(0), "\(watched.outcome.outputText.suffix(2000))")
      return
    }
    let alone = try await Self.inFolder { [program] folder in
      try Child.run(Self.command(item, folder, program), limit: 60)
    }
    #expect(watched.outcome.status == alone.status)
    #expect(watched.outcome.outputText == alone.outputText)
    #expect(watched.outcome.errorText == alone.errorText)
  }

  private static func command(_ item: Case, _ folder: String, _ program: String) -> [String] {
    ["/bin/bash", "-c", "cd \"$1\" && eval \"$0\"", item.script, folder, program]
  }
  private static func isThere(_ program: String) throws -> Bool {
    try Child.run(["/bin/sh", "-c", "command -v \(program)"], limit: 10).status == .exited(0)
  }
  private static func inFolder<T: Sendable>(_ run: @escaping @Sendable (String) throws -> T)
    async throws -> T
  {
    try await Gate.shared.pass {
      let folder = FileManager.default.temporaryDirectory.appending(path: "zoo-\(UUID())")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      return try run(folder.path)
    }
  }
}
