import { describe, expect, it, onTestFinished } from 'vitest'
import { Adapter } from '../../packages/conformance/src/client/adapter.js'
import { CaseServer } from '../../packages/conformance/src/client/case-server.js'
import { ROOT } from '../deploy/files.js'
import { CLIENTS } from './adapters.js'

const TEST_MS = 300_000
const BATCH_COUNT = 200
const BATCH_MESSAGES = 20
/** Batches per cut of all connections. */
const CUT_EVERY = 40

/** `maxWaiting` of each listener: they read when all is over. */
const LISTENERS = { tiny: 1, slow: 7, roomy: 1_000 }

describe.each(CLIENTS)('$name', ({ command, env }) => {
  it('loses, doubles and inverts nothing while connections are cut', { timeout: TEST_MS }, async () => {
    const server = await CaseServer.start({
      options: {
        history: ['log.#=20000,1h', 'streams.#=20000,1h'],
        historyMaxMessages: 50_000,
        // A client may pause for longer after cuts in a row.
        streamLeaseMs: TEST_MS,
      },
    })
    onTestFinished(() => server.stop())
    const adapter = new Adapter(command, ROOT, env)
    onTestFinished(() => adapter.stop())
    await adapter.hello
    for (const client of ['writer', 'reader']) await adapter.call({ do: 'connect', client, url: server.url })
    for (const [listener, maxWaiting] of Object.entries(LISTENERS)) {
      await adapter.call({ do: 'listen', client: 'reader', listener, pattern: 'log.s', maxWaiting })
    }
    await adapter.call({ do: 'openStream', client: 'writer', writer: 'w', key: 'streams.1' })
    await adapter.call({ do: 'readStream', client: 'reader', reader: 'r', key: 'streams.1' })
    const read = readStream(adapter)
    let written = ''
    for (let batch = 0; batch < BATCH_COUNT; batch++) {
      const accepted = Array.from({ length: BATCH_MESSAGES }, (_, index) =>
        adapter.call({
          do: 'publish',
          client: 'writer',
          key: 'log.s',
          payload: { n: batch * BATCH_MESSAGES + index },
        }),
      )
      const appended = adapter.call({ do: 'append', writer: 'w', content: `${batch},` })
      written += `${batch},`
      if (batch % CUT_EVERY === 0) await server.fault({ fault: 'cut' })
      await Promise.all([...accepted, appended])
    }
    await adapter.call({ do: 'endStream', writer: 'w' })
    expect(await read).toEqual({ status: 'end', content: written })
    const count = BATCH_COUNT * BATCH_MESSAGES
    for (const listener of Object.keys(LISTENERS)) {
      expect(await adapter.call({ do: 'nextMany', listener, count }), listener).toEqual({
        gaps: 0,
        first: 0,
        last: count - 1,
        ascending: true,
      })
    }
  })
})

async function readStream(adapter: Adapter): Promise<{ status: unknown; content: string }> {
  let content = ''
  while (true) {
    const part = await adapter.call({ do: 'streamNext', reader: 'r' })
    if (part.status !== undefined) return { status: part.status, content }
    content = `${part.isWhole === true ? '' : content}${String(part.content)}`
  }
}
