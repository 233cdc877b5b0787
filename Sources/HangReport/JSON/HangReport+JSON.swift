// Foundation proper costs tens of milliseconds at start; its essentials alone know JSON.
#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Why a saved report cannot be read: what is wrong, and where.
public struct ReportError: Error, Sendable, Equatable, CustomStringConvertible {
  /// Counted from 1; nil where the place is not known.
  public var line: Int?
  /// The place in the document, such as `findings[0].kind`; "" for the document itself.
  public var path: String
  public var reason: String
  public init(line: Int?, path: String, reason: String) {
    self.line = line
    self.path = path
    self.reason = reason
  }
  public var description: String {
    let place = [line.map { "line \($0)" }, path.isEmpty ? nil : path].compactMap { $0 }
    return (place + [reason]).joined(separator: ": ")
  }
}

extension HangReport {
  /// The report as JSON in UTF-8 with sorted keys; without `pretty` on one line, and without a line
  /// break at its end.
  public func json(pretty: Bool = false) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if pretty { encoder.outputFormatting.insert(.prettyPrinted) }
    return try [UInt8](encoder.encode(self))
  }

  /// Reads a report back; unknown keys are ignored, an unknown schema or word is an error.
  public init(json: [UInt8]) throws(ReportError) {
    guard json.contains(where: { !JSONLocator.isSpace($0) }) else {
      throw ReportError(line: nil, path: "", reason: "it is empty")
    }
    let data = Data(json)
    do {
      // A newer report would fail at some odd key first: look at its schema before the rest.
      let schema = try JSONDecoder().decode(SchemaOnly.self, from: data).schema
      guard schema == HangReport.schema else {
        throw ReportError(
          line: JSONLocator(json).place(of: [.key("schema")])?.line, path: "schema",
          reason: "this version reads \(HangReport.schema), not \(shown(schema))")
      }
      self = try JSONDecoder().decode(HangReport.self, from: data)
    } catch let error as ReportError {
      throw error
    } catch let error as DecodingError {
      throw ReportError(error, in: json)
    } catch {
      throw ReportError(line: nil, path: "", reason: "\(error)")
    }
  }
}

private struct SchemaOnly: Decodable { var schema: String }

extension ReportError {
  fileprivate init(_ error: DecodingError, in json: [UInt8]) {
    let locator = JSONLocator(json)
    switch error {
    case .dataCorrupted(let context) where context.codingPath.isEmpty:
      let fault = locator.firstFault()
      self.init(line: fault?.line, path: "", reason: fault?.reason ?? "this is not JSON")
    case .dataCorrupted(let context):
      self.init(context, locator) { found in
        context.debugDescription.hasPrefix("Cannot initialize")
          ? "\(found) is not a word that this version knows" : context.debugDescription
      }
    case .keyNotFound(let key, let context):
      self.init(context, locator) { _ in "\(shown(key.stringValue)) is missing" }
    case .valueNotFound(let type, let context), .typeMismatch(let type, let context):
      self.init(context, locator) { found in
        "\(found) stands where \(Self.words(for: type)) belongs"
      }
    @unknown default:
      self.init(line: nil, path: "", reason: "\(error)")
    }
  }

  private init(
    _ context: DecodingError.Context, _ locator: JSONLocator, _ reason: (String) -> String
  ) {
    let steps = context.codingPath.map { key in
      key.intValue.map(JSONLocator.Step.index) ?? .key(key.stringValue)
    }
    let place = locator.place(of: steps)
    self.init(
      line: place?.line, path: JSONLocator.describe(steps),
      reason: reason(place?.text ?? "something else"))
  }

  private static func words(for type: any Any.Type) -> String {
    switch type {
    case is String.Type: "a string"
    case is Bool.Type: "true or false"
    case is any BinaryInteger.Type: "a whole number"
    case is any FloatingPoint.Type: "a number"
    case is [Any].Type: "a list"
    default: "an object"
    }
  }
}

private func shown(_ text: String) -> String { "\"\(text.prefix(60))\"" }
