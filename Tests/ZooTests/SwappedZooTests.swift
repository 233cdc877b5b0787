import Foundation
import HangReport
import Testing

/// The sources of the zoo once more, compiled against the drop-ins with nothing but the typealiases of
/// `support.swift`, and watched from within.
@Suite("Zoo swapped") struct SwappedZooTests {
  @Test("faults are found from within", arguments: Fixture.swapped.filter { !$0.isHealthy })
  func faulty(_ fixture: Fixture) async throws {
    let result = try await Swapped.run(fixture, adding: "on-deadlock=terminate")
    let outcome = result.outcome
    let kinds = result.reports.flatMap(\.findings).map { "\($0.severity) \($0.kind)" }
    let matching = result.reports.filter { !fixture.matching($0).isEmpty }
    #expect(!matching.isEmpty, "expected \(fixture.expected), found \(kinds); \(outcome.status)")
    let strangers = result.reports.flatMap(fixture.strangers)
    #expect(strangers.isEmpty, "\(strangers.map(\.message))")
    for finding in matching.flatMap(fixture.matching) where finding.kind == .deadlock {
      #expect(fixture.isSureEnough(finding))
      #expect(!finding.message.isEmpty && !finding.fingerprint.isEmpty)
    }
    // One of several reports that fit is enough: it says all that must be said.
    let problems = matching.map { fixture.problems($0) + cycleProblems($0, fixture) }
    #expect(problems.isEmpty || problems.contains(where: \.isEmpty), "\(problems)")
    let done = outcome.outputText.contains("DONE\n")
    switch fixture.ending {
    case .ended, .trap: #expect(!done)
    case .done: #expect(done)
    case .status(let status): #expect(done && outcome.status == .exited(status))
    case .any, .timeout, .same: break
    }
  }

  @Test("healthy programs stay as they are", arguments: Fixture.swapped.filter(\.isHealthy))
  func healthy(_ fixture: Fixture) async throws {
    let result = try await Swapped.run(fixture, adding: "predict=on")
    let findings = result.reports.flatMap(\.findings).filter(\.isLoud)
    #expect(findings.isEmpty, "\(findings.map(\.message))")
    let outcome = result.outcome
    #expect(outcome.status == .exited(0), "\(outcome.status): \(outcome.errorText.suffix(1500))")
    #expect(outcome.outputText.hasSuffix("DONE\n"))
    #expect(outcome.errorText.isEmpty, "\(outcome.errorText.suffix(1500))")
    guard fixture.doors.contains(.run) else { return }
    let program = try await Builder.shared.program(fixture)
    let alone = try await Gate.shared.pass { try Watched.alone(fixture, program) }
    #expect(outcome.output == alone.output, "alone it says \(alone.outputText)")
  }

  private func cycleProblems(_ report: HangReport, _ fixture: Fixture) -> [String] {
    guard !fixture.cycles.isEmpty else { return [] }
    let found = fixture.matching(report).map(report.names(ofCycle:))
    let isThere = found.contains { fixture.cycles.contains($0) }
    return isThere ? [] : ["expected a cycle of \(fixture.cycles), found \(found)"]
  }
}

/// A package with an executable for each source, built against this one.
private actor Swapped {
  struct Result: Sendable {
    var outcome: Child.Outcome
    var reports: [HangReport]
  }
  static let shared = Swapped()
  private let folder = Fixture.root.appending(path: ".build/swapped")
  private var builds: [String: Task<URL, any Error>] = [:]
  private var isWritten = false

  static func run(_ fixture: Fixture, adding options: String = "") async throws -> Result {
    let program = try await shared.program(fixture)
    return try await Gate.shared.pass {
      let log = FileManager.default.temporaryDirectory.appending(path: "zoo-\(UUID()).jsonl")
      defer { try? FileManager.default.removeItem(at: log) }
      let outcome = try Child.run(
        [program.path] + fixture.arguments, input: Watched.input, limit: 20,
        adding: [
          "HANGCHECK_OPTIONS":
            // A note of a long wait would stand among a healthy program's own words.
            "log=\(log.path) wait-threshold=\(threshold(fixture)) \(options)"
        ])
      let lines = ((try? Data(contentsOf: log)) ?? Data()).split(separator: UInt8(ascii: "\n"))
      let reports = try lines.map { try JSONDecoder().decode(HangReport.self, from: Data($0)) }
      return Result(outcome: outcome, reports: reports)
    }
  }

  private static func threshold(_ fixture: Fixture) -> String {
    if let index = fixture.options.firstIndex(of: "--wait-threshold") {
      return fixture.options[index + 1]
    }
    return fixture.isHealthy ? "15s" : "3s"
  }

  /// Builds the executable of a source; one that does not compile fails alone.
  private func program(_ fixture: Fixture) async throws -> URL {
    try write()
    let name = Self.name(fixture.source)
    let last = Array(builds.values)
    if let build = builds[name] { return try await build.value }
    let folder = folder
    let task = Task {
      // SwiftPM builds one at a time.
      for build in last { _ = await build.result }
      return try await Gate.shared.pass { try Self.build(name, in: folder) }
    }
    builds[name] = task
    return try await task.value
  }

  private static func name(_ source: String) -> String { "swapped-\(source.prefix { $0 != "." })" }

  private static func build(_ name: String, in folder: URL) throws -> URL {
    let command = ["/usr/bin/env", "swift", "build", "--package-path", folder.path]
    let outcome = try Child.run(command + ["--product", name], limit: 1200)
    guard outcome.status == .exited(0) else {
      let lines = (outcome.outputText + outcome.errorText).split(separator: "\n")
      let errors = lines.filter { $0.contains("error:") }
      throw Builder.Failure(
        description: "\(name) does not compile against the drop-ins:\n"
          + (errors.isEmpty ? lines.suffix(20) : errors.prefix(20)).joined(separator: "\n"))
    }
    return folder.appending(path: ".build/debug/\(name)")
  }

  /// What has not changed is not written again, so that it is not built again.
  private func write() throws {
    guard !isWritten else { return }
    var targets: [String] = []
    for source in Set(Fixture.table.filter { $0.doors.contains(.swap) }.map(\.source)).sorted() {
      let name = Self.name(source)
      for file in [source] + Fixture.companions(of: source) {
        let text = try Data(contentsOf: Fixture.folder.appending(path: file))
        try write(text, to: folder.appending(path: "Sources/\(name)/\(file)"))
      }
      targets.append(
        """
            .executableTarget(
              name: "\(name)",
              dependencies: [
                .product(name: "InstrumentedLocks", package: "hangcheck"),
                .product(name: "Watchdog", package: "hangcheck"),
              ], swiftSettings: [.define("SWAPPED")]),
        """)
    }
    let manifest = """
      // swift-tools-version: 6.2
      import PackageDescription

      let package = Package(
        name: "swapped",
        dependencies: [.package(name: "hangcheck", path: "\(Fixture.root.path)")],
        targets: [
      \(targets.joined(separator: "\n"))
        ],
        swiftLanguageModes: [.v5]
      )

      """
    try write(Data(manifest.utf8), to: folder.appending(path: "Package.swift"))
    isWritten = true
  }

  private func write(_ data: Data, to file: URL) throws {
    if let old = try? Data(contentsOf: file), old == data { return }
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try data.write(to: file, options: .atomic)
  }
}
