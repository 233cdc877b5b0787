// swift-tools-version: 6.2
// What the drop-in types cost: `swift run -c release` in this folder; what they cost when
// detection is compiled out: `HANGCHECK_COMPILED_OUT=1 swift run -c release --scratch-path .build/compiled-out`.
import PackageDescription

let isCompiledOut = Context.environment["HANGCHECK_COMPILED_OUT"] != nil

let package = Package(
  name: "DropIns",
  dependencies: [
    .package(name: "hangcheck", path: "../..", traits: isCompiledOut ? [] : [.defaults])
  ],
  targets: [
    .executableTarget(
      name: "DropIns",
      dependencies: [
        .product(name: "InstrumentedLocks", package: "hangcheck"),
        .product(name: "Watchdog", package: "hangcheck"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
