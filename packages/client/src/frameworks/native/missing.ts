import { Utf8Decoder } from './text-decoder.js'

/** What the client needs and an engine may lack. */
interface Engine {
  TextDecoder?: unknown
  Symbol: { asyncIterator?: symbol; for(name: string): symbol }
}

/**
 * Adds what Hermes lacks: `TextDecoder` before React Native 0.85, for binary payloads, and `Symbol.asyncIterator`, for
 * `for await`. Modules that are evaluated before it do not see the symbol.
 */
export function addMissing(engine: Engine = globalThis as unknown as Engine): void {
  engine.TextDecoder ??= Utf8Decoder
  engine.Symbol.asyncIterator ??= engine.Symbol.for('Symbol.asyncIterator')
}
