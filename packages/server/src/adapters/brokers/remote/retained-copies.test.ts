import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { OutboundMessage } from '../../../kernel/ports/broker.js'
import { RetainRules } from '../../../kernel/ports/retain-rules.js'
import { RetainedSet } from '../log/retained-set.js'
import { RetainedCopies } from './retained-copies.js'

const MAX_MESSAGES = 90

/** A log of which one node keeps the state. Its copies arrive when the test says so. */
class Log {
  readonly set = new RetainedSet(new RetainRules(['k.#'], { maxKeys: 100, maxBytes: 100_000 }), 0)
  readonly copies: RetainedCopies
  readonly copied: OutboundMessage[] = []
  readonly settle: { resolve(value: unknown): void; reject(error: Error): void }[] = []
  offset = 0

  constructor(maxBytes = 1_000_000) {
    this.copies = new RetainedCopies({
      maxMessages: MAX_MESSAGES,
      maxBytes,
      random: () => 0,
      copy: (message) => {
        this.copied.push(message)
        return new Promise((resolve, reject) => this.settle.push({ resolve, reject }))
      },
    })
    this.copies.begin(this.set)
  }

  publish(key: string, payload = Uint8Array.of(1)): void {
    const message = {
      key,
      payload,
      isBinary: true,
      offset: ++this.offset,
      fingerprint: this.offset,
      attributes: undefined,
    }
    this.set.note(message)
    this.copies.logged(key, payload.length, this.offset)
  }

  async publishOthers(count: number): Promise<void> {
    for (let index = 0; index < count; index++) this.publish('other')
    await nextTurn()
  }

  /** The log brings the copies that were written. */
  async bring(): Promise<void> {
    for (const message of this.copied.splice(0)) {
      const { copyOf: offset = 0, copyFingerprint: fingerprint = 0 } = message.attributes ?? {}
      const isCurrent = this.set.noteCopy({ ...message, offset, fingerprint, attributes: undefined }, ++this.offset)
      this.copies.logged(message.key, message.payload.length, this.offset)
      if (!isCurrent) this.copies.outdated(message.key)
    }
    for (const { resolve } of this.settle.splice(0)) resolve(undefined)
    await nextTurn()
    await nextTurn()
  }
}

const keysOf = (messages: readonly OutboundMessage[]) =>
  messages.map(({ key, attributes }) => `${key}@${attributes?.copyOf}`)

describe('RetainedCopies', () => {
  it('copies a quiet message before the log drops it, again and again, and no busy one', async () => {
    const log = new Log()
    log.publish('k.quiet')
    for (let round = 0; round < 5; round++) {
      log.publish('k.busy')
      await log.publishOthers(20)
      expect(keysOf(log.copied)).toEqual([])
      log.publish('k.busy')
      await log.publishOthers(20)
      expect(keysOf(log.copied)).toEqual(['k.quiet@1'])
      await log.bring()
    }
  })

  it('copies by bytes, too', async () => {
    const log = new Log(6_000)
    log.publish('k.quiet')
    await log.publishOthers(2)
    expect(log.copied).toEqual([])
    await log.publishOthers(5)
    expect(keysOf(log.copied)).toEqual(['k.quiet@1'])
  })

  it('copies no removed key', async () => {
    const log = new Log()
    log.publish('k.quiet')
    log.publish('k.quiet', new Uint8Array(0))
    await log.publishOthers(80)
    expect(log.copied).toEqual([])
  })

  it('logs the present message, or the removal, behind a copy that was overtaken', async () => {
    const log = new Log()
    for (const key of ['k.a', 'k.b']) log.publish(key)
    await log.publishOthers(40)
    expect(keysOf(log.copied)).toEqual(['k.a@1', 'k.b@2'])
    log.publish('k.a')
    log.publish('k.b', new Uint8Array(0))
    await log.bring()
    expect(log.copied.map(({ key, attributes, payload }) => [key, attributes?.copyOf, payload.length])).toEqual([
      ['k.a', 43, 1],
      ['k.b', 44, 0],
    ])
  })

  it('copies again what the log may not have got, when the log goes on', async () => {
    const log = new Log()
    log.publish('k.quiet')
    await log.publishOthers(40)
    log.copied.splice(0)
    log.settle.splice(0)[0]?.reject(new Error('lost'))
    await nextTurn()
    expect(log.copied).toEqual([])
    await log.publishOthers(1)
    expect(keysOf(log.copied)).toEqual(['k.quiet@1'])
  })
})
