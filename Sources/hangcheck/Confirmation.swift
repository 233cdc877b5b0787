import CHangcheck
import Glibc
import HangReport
import ProcessInspector

/// `--confirm`: runs the program again, steered into each potential deadlock, and says which happened.
///
/// What happens is beyond doubt; what does not happen within the attempts stays possible.
struct Confirmation {
  static let mostAttempts = 3

  let program: Program
  let agent: AgentLibrary
  let image: ProgramImage
  let words: [String]
  let options: Options
  let supervisor: Supervisor
  /// The user's own run, nanoseconds.
  let lasted: UInt64

  /// Makes findings of the report confirmed; returns their indices.
  func complete(
    _ report: inout HangReport, _ predictions: [Prediction], arguments: borrowing CStringArray
  ) -> Set<Int> {
    // Not those that are suppressed; once where several findings say the same.
    let indices = predictions.map { report.findings.indices(where: $0.isTold) }
    let wanted = zip(indices, predictions).enumerated()
      .filter { !$0.element.0.isEmpty && indices.firstIndex(of: $0.element.0) == $0.offset }
      .map { (findings: Set($0.element.0.ranges.joined()), prediction: $0.element.1) }
    guard !wanted.isEmpty, image.toleratesPreload else { return [] }
    say("steering \(words[0]) into \(count(wanted.count)); an interrupt ends this")
    hck_adopt_orphans(true)
    defer { hck_adopt_orphans(false) }
    var confirmed: Set<Int> = []
    attempts: for (findings, prediction) in wanted {
      for number in 0..<Self.mostAttempts where confirmed.isDisjoint(with: findings) {
        guard let plan = plan(for: prediction, attempt: number) else { break }
        switch attempt(plan, arguments) {
        case .failed(let reason):
          addLimit("whether they happen in a steered run: \(reason)", to: &report)
          break attempts
        case .interrupted:
          addLimit("whether they happen in a steered run: that was interrupted", to: &report)
          break attempts
        case .nothing: break
        case .deadlocked(let seen):
          // One attempt may close the cycle of another prediction.
          for (others, prediction) in wanted where prediction.happened(in: seen) {
            for other in others where confirmed.insert(other).inserted {
              confirm(&report.findings[other], plan)
            }
          }
        }
      }
    }
    let open = wanted.count { confirmed.isDisjoint(with: $0.findings) }
    say("\(wanted.count - open) of \(wanted.count) potential deadlocks happened")
    if open > 0 {
      addLimit(
        "whether \(count(open)) can happen: within \(Self.mostAttempts) steered runs each none did",
        to: &report)
    }
    return confirmed
  }

  /// The same again may do where timing decides; then a step's threads come late on purpose, for the
  /// case that they stand in the others' way when they are early.
  private func plan(for prediction: Prediction, attempt number: Int) -> SteeringPlan? {
    let late = prediction.steps.indices.filter { !prediction.steps[$0].took.isEmpty }
    let plan = SteeringPlan(
      milliseconds: UInt32(min(10_000, max(1_000, lasted / 1_000_000 + 500))),
      late: number == 0 || prediction.steps.count < 2 || late.isEmpty
        ? 0 : late[(number - 1) % late.count] + 1,
      steps: prediction.steps)
    // What the agent has no room for would be cut short.
    return (try? SteeringPlan("\(plan)")) == nil ? nil : plan
  }

  private func attempt(
    _ plan: SteeringPlan, _ arguments: borrowing CStringArray
  ) -> Attempt.Outcome {
    // Twice the first run, what is spent on holding back, and a start.
    if options.verbose { say("attempt with --steer \(plan)") }
    let most = 2 * lasted + UInt64(plan.milliseconds) * 2_000_000 + 3_000_000_000
    return Attempt(
      program: program, agent: agent, image: image, words: words, options: options, plan: plan,
      limit: min(most, options.timeout?.nanoseconds ?? .max)
    ).run(arguments, supervisor)
  }

  private func confirm(_ finding: inout Finding, _ plan: SteeringPlan) {
    finding.severity = .error
    finding.certainty = .confirmed
    finding.message += ", and in a steered run they did"
    let command = (["hangcheck", "--steer", "\(plan)", "--"] + words).map(Self.quoted)
    finding.evidence.append(
      .init(
        label: "it happens again with: \(command.joined(separator: " "))", thread: nil, stack: []))
  }

  /// A word as a shell reads it.
  static func quoted(_ word: String) -> String {
    let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")
    if !word.isEmpty, word.allSatisfy(plain.contains) { return word }
    return "'"
      + word.split(separator: "'", omittingEmptySubsequences: false)
      .joined(separator: "'\\''") + "'"
  }

  private func count(_ number: Int) -> String {
    "\(number) potential deadlock\(number == 1 ? "" : "s")"
  }

  private func addLimit(_ text: String, to report: inout HangReport) {
    report.limits = (report.limits ?? []) + [text]
  }

  private func say(_ line: String) {
    if options.format == .text, !options.quiet { Tool.say(line) }
  }
}
