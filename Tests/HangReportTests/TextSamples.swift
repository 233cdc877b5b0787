import HangReport
import Testing
import WaitForGraph

@Suite struct TextSamples {
  @Test func show() {
    print(Fixture.crosswise.text())
    print(Fixture.selfDeadlock.text())
    print(Fixture.ring(100, others: 5000).text())
    var f = Fixture()
    f.resource(1, .rwlock)
    f.thread(1, "up", holds: [(1, .shared, f.stack("a()", 4))], waits: (1, .exclusive, f.stack("b()", 5)))
    print(f.text())
    f = Fixture()
    f.resource(1, .rwlock)
    f.thread(1, "reader", holds: [(1, .shared, f.stack("a()", 4))], waits: (1, .shared, f.stack("b()", 5)))
    f.thread(2, "writer", waits: (1, .exclusive, f.stack("w()", 5)))
    f.thread(3, "late", waits: (1, .shared, f.stack("w()", 15)))
    print(f.text())
    f = Fixture()
    f.resource(1)
    f.resource(2, .thread, thread: 2)
    f.thread(0, "app", holds: [(1, .exclusive, f.stack("a()", 4))], waits: (2, .exclusive, f.stack("b()", 5)))
    f.thread(2, "worker", waits: (1, .exclusive, f.stack("w()", 5)))
    print(f.text())
    f = Fixture()
    f.resource(1)
    f.limits = ["The binary is stripped."]
    f.thread(1, "waiter", waits: (1, .exclusive, f.stack("b()", 5)))
    f.thread(2, "late", waits: (1, .exclusive, f.stack("b()", 5)))
    f.thread(3, "gone", holds: [(1, .exclusive, [f.frame(nil)])], isAlive: false)
    print(f.text())
    for x in f.findings { print(x.message) }
    for x in Fixture.ring(100).findings { print(x.message) }
    print(Fixture.crosswise.text(verbose: true, color: true))
  }
}
