// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "SwapIn",
  dependencies: [.package(name: "hangcheck", path: "../..")],
  targets: [
    .executableTarget(
      name: "SwapIn",
      dependencies: [
        .product(name: "InstrumentedLocks", package: "hangcheck"),
        .product(name: "Watchdog", package: "hangcheck"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
