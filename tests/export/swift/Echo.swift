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
