import { describe, expect, it } from 'vitest'
import { parseStreamPlace } from 'webmq-client/protocol'
import { recordingLogger } from '../../../test/fake-server.js'
import { contentOf } from '../../../test/stream-content.js'
import { PROCESS } from '../../kernel/identity/actor.js'
import type { PendingByClient } from '../../kernel/publishing/author.js'
import { requestAuthor, trustedLimits } from '../../kernel/publishing/author.js'
import type { Draft } from '../../kernel/publishing/draft.js'
import { StreamFold } from './fold.js'
import { type Decide, SharedStreams } from './shared-streams.js'
import type { StreamWatch } from './watch.js'

/** Streams over a log that takes each message, or loses each race. */
function start({ isTaking }: { readonly isTaking: boolean }) {
  const state = { isGone: false, publishCount: 0 }
  const pending: PendingByClient = new Map()
  const author = requestAuthor(
    PROCESS,
    trustedLimits({ maxWords: 32, maxPayloadBytes: 1_000 }),
    pending,
    () => state.isGone,
  )
  const fold = new StreamFold()
  const turn: Promise<unknown> = Promise.resolve()
  const watch = { key: 'k', fold, turn, gapped: () => undefined, until: async (isOver: () => boolean) => isOver() }
  const publish = (_: unknown, { place = '' }: Draft) => {
    const parsed = parseStreamPlace(place)
    if (isTaking && parsed !== undefined) fold.take(parsed, contentOf(undefined))
    state.publishCount++
    return { isDuplicate: false, position: { epoch: 'e', offset: 0, fingerprint: 0 } }
  }
  const context = {
    streams: {
      maxBytes: 1_000,
      countAppends: () => undefined,
      hasCopies: false,
      reachEnd: async () => undefined,
      use: <T>(_: string, use: (watch: StreamWatch) => Promise<T>) => use(watch as unknown as StreamWatch),
    },
    publisher: { publish },
    author,
    logger: recordingLogger().logger,
  }
  // Where the log stands: behind each message.
  Object.assign(watch, { position: { epoch: 'e', offset: 1, fingerprint: 0 } })
  const streams = new SharedStreams(context)
  const compete = (decide: Decide) => streams.compete(author, 'k', decide)
  return { state, compete }
}

const write = (sequence: number, kind: 'start' | 'delete', stream: string) => ({
  ...{ stream, sequence, kind, payload: new Uint8Array(), isBinary: false, mark: { atMs: 1 } },
})

/** Deletes what is there, and begins another one. */
const again: Decide = ({ stream = '', sequence, isActive }) =>
  isActive ? write(sequence + 1, 'delete', stream) : write(0, 'start', `${stream}x`)

describe('a request that writes to a stream', () => {
  // Symptom: one request wrote into the log for ever. Cause: each message that was taken began its attempts anew.
  it('writes at most four messages', async () => {
    const { state, compete } = start({ isTaking: true })
    await expect(compete(again)).rejects.toMatchObject({ code: 'E_NODE_BEHIND' })
    expect(state.publishCount).toBe(4)
  })

  it('gives up when it has lost 16 races', async () => {
    const { state, compete } = start({ isTaking: false })
    await expect(compete(() => write(0, 'start', 's'))).rejects.toMatchObject({ code: 'E_NODE_BEHIND' })
    expect(state.publishCount).toBe(16)
  })

  // Symptom: it went on when its client had left. Cause: nobody looked.
  it('writes no more when its author is gone', async () => {
    const { state, compete } = start({ isTaking: true })
    const decide: Decide = (fold, isTaken) => {
      state.isGone = true
      return again(fold, isTaken)
    }
    await expect(compete(decide)).rejects.toMatchObject({ code: 'E_DISCONNECTED' })
    expect(state.publishCount).toBe(1)
  })
})
