import { describe, expect, it } from 'vitest'
import { resolveOptions } from './options.js'
import { historyDefect } from './rules.js'

// Symptom: config check took a history of 1 GiB with a heap of 40 MB, and the node ended by itself once it was full.
describe('historyDefect', () => {
  const MIB = 1024 ** 2
  const room = { heapBytes: 40 * MIB, memoryBytes: 512 * MIB }
  const options = resolveOptions({})

  it('is none for what fits, however often it is asked', () => {
    expect(historyDefect(options, room)).toBeUndefined()
    expect(
      historyDefect({ ...options, historyMaxMessages: 1_000_000, historyMaxBytes: 512 * MIB }, room),
    ).toBeUndefined()
  })

  it('names what does not fit', () => {
    expect(historyDefect({ ...options, historyMaxMessages: 2_000_000 }, room)).toMatch(
      /^historyMaxMessages: .*heap, 40 MiB/,
    )
    expect(historyDefect({ ...options, historyMaxBytes: 513 * MIB }, room)).toMatch(/^historyMaxBytes: .*here, 512 MiB/)
  })

  it('does not look at a log that nobody keeps', () => {
    const large = { historyMaxMessages: 2_000_000, historyMaxBytes: 513 * MIB }
    expect(historyDefect({ ...options, ...large, broker: 'redis://127.0.0.1' }, room)).toBeUndefined()
    expect(historyDefect({ ...options, ...large, broker: 'redis://127.0.0.1', history: ['a=1'] }, room)).toBeDefined()
    expect(historyDefect({ ...options, ...large, historyMaxMessages: 0 }, room)).toBeUndefined()
  })
})
