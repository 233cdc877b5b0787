import Testing
import WaitForGraph

@Suite struct LockOrderTests {
  static let rules = [
    // The plain ones.
    OrderSituation("1: a b; 2: b a", "2:b>a 1:a>b"),
    OrderSituation("1: a b; 2: a b"),
    OrderSituation("1: a b; 2: b c; 3: c a", "3:c>a 1:a>b 2:b>c"),
    OrderSituation("1: a b; 2: b c; 3: c d; 4: d a", "4:d>a 1:a>b 2:b>c 3:c>d"),
    OrderSituation("1: a b c; 2: c a", "2:c>a 1:a>c"),
    // A lock between, held as well, makes no other cycle.
    OrderSituation("1: a x b; 2: b y a", "2:b>a 1:a>b"),
    OrderSituation("1: a b; 2: b a; 3: c d; 4: d c", "2:b>a 1:a>b", "4:d>c 3:c>d"),
    // Hand over hand.
    OrderSituation("1: a b a- c b- d; 2: a b a- c b- d"),
    OrderSituation("1: a b a- c; 2: c a"),
    OrderSituation("1: a b a- c; 2: c b", "2:c>b 1:b>c"),

    // One thread took both orders, or some.
    OrderSituation("1: a b; 1: b a", "one 1:b>a 1:a>b"),
    OrderSituation("1: a b; 1: b c; 1: c a", "one 1:c>a 1:a>b 1:b>c"),
    OrderSituation("1: a b; 1: b c; 2: c a"),
    OrderSituation("1: a b; 1: b a; 2: a b", "1:b>a 2:a>b"),
    OrderSituation("1: g a b; 1: g b a"),

    // Gates.
    OrderSituation("1: g a b; 2: g b a"),
    OrderSituation("1: g x a b; 2: y g b a"),
    OrderSituation("1: g a b; 2: h b a", "2:b>a 1:a>b"),
    OrderSituation("1: g a b; 2: g b a; 3: b a", "3:b>a 1:a>b"),
    OrderSituation("1: r' a b; 2: r' b a", "2:b>a 1:a>b"),
    OrderSituation("1: r' a b; 2: r b a"),
    OrderSituation("1: w' a b; 2: w' b a", "2:b>a 1:a>b"),
    OrderSituation("1: g? a b; 2: g? b a"),
    OrderSituation("1: g a b; 2: g b c; 3: c a"),
    // Taken after the lock, it is one for what comes inside, and makes shorter cycles.
    OrderSituation("1: a g b; 2: b g a", "2:g>a 1:a>g", "1:g>b 2:b>g"),

    // Trylocks: nobody waits for them, but they are held.
    OrderSituation("1: a b?; 2: b a"),
    OrderSituation("1: a? b; 2: b? a", "2:b>a 1:a>b"),
    OrderSituation("1: a? b; 2: b a?"),

    // Modes.
    OrderSituation("1: r' a; 2: a r'"),
    OrderSituation("1: r' a; 2: a r", "1:r>a 2:a>r"),
    OrderSituation("1: r a; 2: a r'", "1:r>a 2:a>r"),
    OrderSituation("1: w' a; 2: a w'", "1:w>a 2:a>w"),
    OrderSituation("1: r' w'; 2: w' r'"),
    OrderSituation("1: v w'; 2: w' v", "2:w>v 1:v>w"),

    // Taken again by the same thread.
    OrderSituation("1: a a"),
    OrderSituation("1: a b a; 2: a b"),
    OrderSituation("1: a b a; 2: b a", "2:b>a 1:a>b"),
    OrderSituation("1: r' r'"),
    OrderSituation("1: w' w'", "one 1:w>w"),
    OrderSituation("1: w' a w'; 2: w' w'?", "one 1:w>w"),
    OrderSituation("1: w w'"),
    OrderSituation("1: w' w"),

    // Happens-before.
    OrderSituation("1: a b; 1 makes 2; 2: b a"),
    OrderSituation("1 makes 2; 1: a b; 2: b a", "2:b>a 1:a>b"),
    OrderSituation("1 makes 2; 2: b a; 1 joins 2; 1: a b"),
    OrderSituation("1 makes 2; 1: a b; 2: b a; 1 joins 2; 1: a b", "2:b>a 1:a>b"),
    OrderSituation("1 makes 2; 1: a b; 1 tells 2; 2: b a"),
    OrderSituation("1 makes 2; 1: a b; 1 tells 2; 1: a b; 2: b a", "2:b>a 1:a>b"),
    OrderSituation("1 makes 2; 1 makes 3; 2: a b; 2 tells 3; 3: b c; 1: c a"),
    OrderSituation("1: a b; 1 makes 2; 1: a b; 2: b a; 1 joins 2", "2:b>a 1:a>b"),
    // A component that is used again: only what the clock says is over.
    OrderSituation("1: x; 2: a b; 2 ends; 3: b a", "3:b>a 2:a>b"),
    OrderSituation("1 makes 2; 2: a b; 2 ends; 1 joins 2; 1 makes 3; 3: b a"),
    OrderSituation("1 makes 2; 1 makes 4; 2: a b; 2 ends; 4 makes 3; 3: b a", "3:b>a 2:a>b"),

    // One report for a pattern, and none for what a smaller one implies.
    OrderSituation("1: p1 p2; 2: p2 p1", "1:p1>p2 2:p2>p1"),
    OrderSituation("1: p1 p2; 2: p2 p1; 3: p3 p4; 4: p4 p3", "1:p1>p2 2:p2>p1"),
    OrderSituation("1: p1 p2; 2: p2 p3; 3: p3 p1", "1:p1>p2 2:p2>p3 3:p3>p1"),
    OrderSituation("1: p1 p2; 2: p2 p3; 3: p3 p1; 4: p4 p5; 5: p5 p4", "4:p4>p5 5:p5>p4"),
    OrderSituation(
      "1: a=1 b=2; 2: b=3 a=4; 3: b=5 a=6", "2:b>a 1:a>b", "3:b>a 1:a>b"),
    OrderSituation("1: a b; 2: b a; 3: a b; 4: b a", "2:b>a 1:a>b"),
    OrderSituation("1: a b; 1: b a; 2: b c; 3: c a; 2: b a", "2:b>a 1:a>b", "3:c>a 1:a>b 2:b>c"),
    // Two readers hold what the last waits for: the shorter way round is enough.
    OrderSituation("1: r' b; 2: b r' c; 3: c r", "2:r>c 3:c>r"),
  ]

  @Test("each rule, in small situations", arguments: rules)
  func rule(_ situation: OrderSituation) {
    #expect(situation.found == situation.expected)
  }

  /// The orders of the Linux kernel's self-test of its lock validator (lib/locking-selftest.c), one
  /// thread for each critical section.
  static let kernel = [
    OrderSituation("1: a a"),
    OrderSituation("1: a b; 2: b a", "2:b>a 1:a>b"),
    OrderSituation("1: a b; 2: b c; 3: c a", "3:c>a 1:a>b 2:b>c"),
    OrderSituation("1: a b; 2: c a; 3: b c", "2:c>a 1:a>b 3:b>c"),
    OrderSituation("1: a b; 2: b c; 3: c d; 4: d a", "4:d>a 1:a>b 2:b>c 3:c>d"),
    OrderSituation("1: a b; 2: c d; 3: b d; 4: d a", "4:d>a 1:a>b 3:b>d"),
    OrderSituation("1: a b; 2: c d; 3: b c; 4: d a", "4:d>a 1:a>b 3:b>c 2:c>d"),
    // Its rwlocks let readers pass waiting writers, its rwsems do not.
    OrderSituation("1: r' r'"),
    OrderSituation("1: w' w'", "one 1:w>w"),
    OrderSituation("1: r r'"),
    OrderSituation("1: r' a; 2: a r'"),
    OrderSituation("1: r' a; 2: a r", "1:r>a 2:a>r"),
    OrderSituation("1: w' a; 2: a w'", "1:w>a 2:a>w"),
    // Of three read-write locks, the first taken for writing or reading, then the second.
    OrderSituation("1: r1 r2'; 2: r2 r3'; 3: r3 r1'", "1:r1>r2 2:r2>r3 3:r3>r1"),
    OrderSituation("1: r1 r2; 2: r2' r3'; 3: r3' r1"),
    OrderSituation("1: r1 r2; 2: r2' r3'; 3: r3 r1'", "1:r1>r2 2:r2>r3 3:r3>r1"),
    OrderSituation("1: r1 r2'; 2: r2' r3'; 3: r3 r1"),
  ]

  @Test("the kernel's orders", arguments: kernel)
  func kernelOrder(_ situation: OrderSituation) {
    #expect(situation.found == situation.expected)
  }
}
