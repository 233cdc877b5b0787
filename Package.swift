// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "hangcheck",
  products: [
    .library(name: "InstrumentedLocks", targets: ["InstrumentedLocks"]),
    .library(name: "Watchdog", targets: ["Watchdog"]),
    .library(name: "HangAgent", type: .dynamic, targets: ["HangAgent"]),
    .executable(name: "hangcheck", targets: ["hangcheck"]),
  ],
  traits: [
    .trait(
      name: "Detection", description: "Off: each drop-in type is the raw primitive, at no cost."),
    .default(enabledTraits: ["Detection"]),
  ],
  targets: [
    // libdw and libelf of elfutils: they read DWARF and ELF.
    .systemLibrary(
      name: "CElfutils", pkgConfig: "libdw", providers: [.apt(["libdw-dev", "libelf-dev"])]),
    .target(name: "CHangcheck"),
    .target(name: "Recorder", dependencies: ["CHangcheck"], swiftSettings: strict),
    .target(name: "WaitForGraph", swiftSettings: strict),
    .target(
      name: "HangReport", dependencies: ["WaitForGraph", "CElfutils", "CHangcheck"],
      swiftSettings: strict),
    .target(
      name: "ProcessInspector", dependencies: ["CHangcheck", "WaitForGraph", "HangReport"],
      swiftSettings: strict),
    .target(
      name: "InstrumentedLocks", dependencies: ["Recorder", "CHangcheck"], swiftSettings: strict),
    .target(
      name: "Watchdog",
      dependencies: ["Recorder", "CHangcheck", "WaitForGraph", "HangReport", "ProcessInspector"],
      swiftSettings: strict),
    // The preloaded agent. unsafeFlags keep a target out of other people's packages, so nothing
    // that the two library products reach may depend on these.
    .target(name: "CHangAgent", dependencies: ["CHangcheck"], cSettings: [.unsafeFlags(["-O2"])]),
    .target(
      name: "HangAgent", dependencies: ["CHangcheck", "CHangAgent"], exclude: ["exports.map"],
      swiftSettings: [
        .enableExperimentalFeature("Embedded"),
        .unsafeFlags([
          "-wmo", "-O", "-Xcc", "-fno-omit-frame-pointer", "-Xllvm",
          "-swiftmergefunc-threshold=0",
          "-Xllvm", "-force-remove-attribute=nounwind", "-Xcc", "-fexceptions",
        ]),
      ],
      linkerSettings: [
        .unsafeFlags([
          "-Xlinker", "--version-script=\(Context.packageDirectory)/Sources/HangAgent/exports.map",
          "-Xlinker", "-z", "-Xlinker", "now",
          // Valgrind 3.19 ends at the debug information of a preloaded library that it cannot read.
          "-Xlinker", "--strip-debug",
        ])
      ]),
    .executableTarget(
      name: "hangcheck",
      dependencies: ["CHangcheck", "WaitForGraph", "HangReport", "ProcessInspector"],
      swiftSettings: strict),
    .testTarget(
      name: "WaitForGraphTests", dependencies: ["WaitForGraph"], swiftSettings: strict),
    .testTarget(
      name: "HangReportTests", dependencies: ["HangReport", "WaitForGraph"], swiftSettings: strict),
    .testTarget(
      name: "HangcheckTests",
      dependencies: [
        "hangcheck", "HangReport", "ProcessInspector", "WaitForGraph", "Recorder", "CHangcheck",
      ],
      swiftSettings: strict),
    // Runs the programs of Tests/Fixtures, which are no targets, and those of Examples.
    .testTarget(
      name: "ZooTests",
      dependencies: [
        "hangcheck", "HangReport", "WaitForGraph", "UnlockedReadWrong", "UnlockedReadFixed",
        "SwapFixture",
      ],
      swiftSettings: strict),
    // An example that needs the drop-ins; the others are single files.
    .executableTarget(
      name: "UnlockedReadWrong", dependencies: ["InstrumentedLocks"],
      path: "Examples/UnlockedRead", exclude: ["README.md", "report.txt", "fixed.swift"],
      sources: ["wrong.swift"]),
    .executableTarget(
      name: "UnlockedReadFixed", dependencies: ["InstrumentedLocks"],
      path: "Examples/UnlockedRead", exclude: ["README.md", "report.txt", "wrong.swift"],
      sources: ["fixed.swift"]),
    // Programs that the tests of the two libraries run as processes.
    .executableTarget(
      name: "SwapFixture", dependencies: ["InstrumentedLocks", "Watchdog"],
      path: "Tests/SwapFixture"),
    .executableTarget(
      name: "ParityFixture", dependencies: ["InstrumentedLocks"], path: "Tests/ParityFixture"),
    .testTarget(
      name: "SwapTests",
      dependencies: [
        "SwapFixture", "ParityFixture", "InstrumentedLocks", "Watchdog", "HangReport",
      ],
      swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)
