// The text in capitals, and 3 as its end; a text of more than 30 bytes is refused.
import Foundation

func echo(_ octets: [UInt8]) -> (text: [UInt8], ids: [Int32], score: Float) {
  precondition(octets.count == 40)
  Thread.sleep(forTimeInterval: 0.005)
  let bytes = octets.prefix { $0 != 0 }
  let text = String(decoding: bytes, as: UTF8.self)
  let said = bytes.count > 30 ? [] : Array(text.uppercased().utf8)
  let ids: [Int32] = text.contains("cut") ? [5, 6, 7] : [5, 3, 0]
  return (said + [UInt8](repeating: 0, count: 64 - said.count), ids, bytes.count > 30 ? .nan : -1)
}

/// What `export --outputs alignment confidence` adds, for a file whose name has "tokens": each
/// token is a word with the space before it, and attends to itself.
func echoedTokens(_ octets: [UInt8]) -> (ends: [Int32], spans: [Int32], confidence: [Float]) {
  let bytes = Array(octets.prefix { $0 != 0 })
  let words = bytes.indices.filter { $0 + 1 == bytes.count || bytes[$0 + 1] == 32 }
  let real = words.map { Int32($0 + 1) }
  let padding = [Int32](repeating: real.last ?? 0, count: 16 - real.count)
  let spans = zip([0] + real, real).flatMap { pair -> [Int32] in [pair.0, pair.1] }
  return (
    real + padding, spans + [Int32](repeating: 0, count: 32 - spans.count),
    (0..<16).map { $0 < real.count ? 1 / Float($0 + 2) : 0 }
  )
}
