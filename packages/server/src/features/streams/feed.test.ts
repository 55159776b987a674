import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { StreamKind } from 'webmq-client/protocol'
import { contentOf } from '../../../test/stream-content.js'
import type { ConnectionId, FrameData, GroupId } from '../../kernel/ports/transport.js'
import type { StreamCursor } from '../../kernel/session/gateway/event-streams.js'
import { StreamFeed } from './feed.js'
import { StreamFold } from './fold.js'

/** A reader as a page is one. */
class Reader {
  text = ''
  status: string | undefined
  isCut = false
  cursor: StreamCursor | undefined
  isMember = false

  take(events: string): void {
    for (const event of events.split('\n\n').slice(0, -1)) {
      const fields = new Map(
        event.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      )
      const [name, id = '', data] = [fields.get('event'), fields.get('id'), JSON.parse(fields.get('data') ?? '')]
      if (name === 'whole') [this.text, this.isCut] = [data.text, data.isCut === true]
      if (name === 'append') this.text += data.text
      if (name !== 'append') this.status = data.status
      const [stream = '', sequence, length] = id.split(':')
      if (stream !== '') this.cursor = { stream, sequence: Number(sequence), length: Number(length) }
    }
  }
}

class Play {
  readonly fold = new StreamFold()
  readonly readers = new Map<ConnectionId, Reader>()
  #tell: () => void = () => undefined
  #connectionCount = 0
  #streamCount = 0
  feed = this.#open()

  /** What the log has next. Nobody is told yet. */
  log(kind: StreamKind, payload?: unknown, skippedCount = 0): void {
    const isNew = kind === 'start'
    const stream = isNew ? `s${++this.#streamCount}` : (this.fold.stream ?? 's0')
    this.fold.take({ stream, sequence: isNew ? 0 : this.fold.sequence + 1 + skippedCount, kind }, contentOf(payload))
  }

  join(reader = new Reader()): void {
    const connection = ++this.#connectionCount as ConnectionId
    this.readers.set(connection, reader)
    this.feed.enter(connection)
    reader.take(this.feed.eventsFor(reader.cursor))
    this.expectSame(reader)
    this.feed.begin(connection)
  }

  rejoin(index: number): void {
    const [connection, reader] = [...this.readers][index % this.readers.size] ?? []
    if (connection === undefined || reader === undefined) return
    this.feed.leave(connection)
    this.readers.delete(connection)
    this.join(Object.assign(reader, { isMember: false }))
  }

  async tell(): Promise<void> {
    this.#tell()
    await new Promise((resolve) => setImmediate(resolve))
    for (const reader of this.readers.values()) this.expectSame(reader)
  }

  expectSame({ text, isCut, status }: Reader): void {
    const { whole = '', stream, status: now } = this.fold
    const isCutNow = this.fold.isCut
    expect({ text, isCut, status }).toEqual({
      // The other half of a character may follow.
      text: this.fold.isActive ? String(whole).replace(/[\ud800-\udbff]$/, '') : whole,
      isCut: isCutNow,
      status: stream === undefined ? 'none' : now,
    })
  }

  #open(): StreamFeed {
    const transport = {
      multicast: (_groups: readonly GroupId[], data: FrameData) => {
        for (const reader of this.readers.values()) if (reader.isMember) reader.take(String(data))
      },
      join: (connection: ConnectionId) => {
        const reader = this.readers.get(connection)
        if (reader !== undefined) reader.isMember = true
      },
      close: (connection: ConnectionId) => {
        const reader = this.readers.get(connection)
        if (reader !== undefined) this.expectSame(reader)
        this.readers.delete(connection)
      },
    }
    const feed = new StreamFeed(transport, 1 as GroupId)
    // It stays open, whoever leaves.
    feed.enter(0 as ConnectionId)
    const until = (isOver: () => boolean) =>
      new Promise<boolean>((resolve) => {
        this.#tell = () => resolve(isOver())
      })
    void feed.run({ fold: this.fold, position: undefined, isClosed: false, until })
    return feed
  }
}

const STEPS = ['append', 'append', 'append', 'start', 'start', 'end', 'skip', 'join', 'rejoin', 'tell'] as const
const texts = fc
  .array(fc.constantFrom('a', '🙂', '\ud83d', '\ude42', '\n'), { maxLength: 3 })
  .map((parts) => parts.join(''))
const steps = fc.array(fc.tuple(fc.constantFrom(...STEPS), texts, fc.nat(5)), {
  maxLength: 80,
  size: 'max',
})

it('gives every reader what the fold has, whenever it comes and comes back', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (steps) => {
      const play = new Play()
      for (const [step, text, index] of steps) {
        if (step === 'append') play.log('append', text)
        else if (step === 'start' || step === 'end') play.log(step)
        else if (step === 'skip') play.log('append', 'behind a hole', 1)
        else if (step === 'join') play.join()
        else if (step === 'rejoin') play.rejoin(index)
        else await play.tell()
      }
      play.join()
      await play.tell()
    }),
    { numRuns: 300 },
  )
})
