// What export/ios/TensorFlowLiteModel.swift uses of the module TensorFlowLite in LiteRT 2.3's
// Swift package, as it is documented.
import Foundation

public final class Interpreter {
  public struct Options {
    public var threadCount: Int?

    public init() {}
  }

  public let signatureKeys = ["translate"]

  private let saysTokens: Bool

  public init(modelPath: String, options: Options? = nil) throws {
    saysTokens = modelPath.contains("tokens")
    print("threads: \(options?.threadCount ?? 0)")
  }

  public func signatureRunner(with key: String) throws -> SignatureRunner {
    SignatureRunner(saysTokens)
  }
}

public struct Tensor {
  public let data: Data
}

public final class SignatureRunner {
  private var tensors = ["text": Data(count: 40)]
  public let outputs: [String]

  init(_ saysTokens: Bool) {
    let tokens = ["text_ends", "source_spans", "confidence", "probability", "known"]
    outputs = ["text", "ids", "score"] + (saysTokens ? tokens : [])
  }

  public func input(named name: String) throws -> Tensor { Tensor(data: tensors[name]!) }

  public func output(named name: String) throws -> Tensor { Tensor(data: tensors[name]!) }

  public func invoke(with inputs: [String: Data]) throws {
    let said = echo(Array(inputs["text"]!))
    tensors["text"] = Data(said.text)
    tensors["ids"] = said.ids.withUnsafeBytes { Data($0) }
    tensors["score"] = withUnsafeBytes(of: said.score) { Data($0) }
    let tokens = echoedTokens(Array(inputs["text"]!))
    guard outputs.count > 3 else { return }
    tensors["text_ends"] = tokens.ends.withUnsafeBytes { Data($0) }
    tensors["source_spans"] = tokens.spans.withUnsafeBytes { Data($0) }
    tensors["confidence"] = tokens.confidence.withUnsafeBytes { Data($0) }
    tensors["probability"] = withUnsafeBytes(of: Float(0.5)) { Data($0) }
    tensors["known"] = withUnsafeBytes(of: Float(0.4)) { Data($0) }
  }
}
