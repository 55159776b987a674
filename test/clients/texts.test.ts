import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createServer, type WebMQServer } from 'webmq-server'
import { Adapter } from '../../packages/conformance/src/client/adapter.js'
import { Peer } from '../../packages/server/test/texts/peer.js'
import { MAX_DEPTH, TEXTS } from '../../packages/server/test/texts/texts.js'
import { ROOT } from '../deploy/files.js'
import { CLIENTS, MISSING } from './adapters.js'

// One message of thousands of nested lists ended a client for good, and its listens with it: whatever others publish, reply or
// tell of themselves, a client goes on.

const MIB = 1_048_576
const CLIENT_MS = 120_000
/** RFC 6455: a text frame has UTF-8, so nobody can send others. */
const SENT = TEXTS.filter(({ isUtf8 }) => isUtf8)

let server: WebMQServer
let url: string

beforeAll(async () => {
  server = createServer({
    ...{
      host: '127.0.0.1',
      port: 0,
      logLevel: 'silent',
      transport: 'ws',
      history: ['#=10000,1h'],
      retain: ['state.#'],
    },
    ...{ maxPayloadBytes: 2 * MIB, maxOutboxBytes: 64 * MIB, presenceMaxDataBytes: 65_536 },
    ...{ workPerSecond: 1_000_000_000, workBurst: 1_000_000_000 },
  })
  url = (await server.start()).url
})
afterAll(() => server.stop({ drainMs: 0 }))

describe.each(CLIENTS)('$name', ({ name, command, env, cannot }) => {
  const own = name.replaceAll(/\W+/g, '-')
  let adapter: Adapter
  let peer: Peer

  beforeAll(async () => {
    adapter = new Adapter(command, ROOT, env)
    await adapter.hello
    await adapter.call({ do: 'connect', client: 'c', url })
    await adapter.call({ do: 'listen', client: 'c', listener: 'honest', pattern: `honest.${own}` })
    await adapter.call({ do: 'listen', client: 'c', listener: 'odd', pattern: `odd.${own}.#` })
    await adapter.call({ do: 'state', client: 'c', listener: 'states', pattern: `state.${own}.#` })
    if (!cannot.includes('presence'))
      await adapter.call({ do: 'watch', client: 'c', listener: 'members', key: `room.${own}` })
  })
  afterAll(() => adapter.stop())

  /** The client gets what is published now. */
  async function goesOn(text: string): Promise<void> {
    await server.publish(`honest.${own}`, text)
    expect(await adapter.call({ do: 'next', listener: 'honest' })).toMatchObject({ payload: text })
  }

  it.each(SENT)(
    'goes on after $name',
    async (text) => {
      peer = await Peer.open(url)
      const key = (first: string) => `${first}.${own}.${TEXTS.indexOf(text)}`
      await peer.ask((id) => `publish ${id} ${key('odd')}`, text.bytes)
      await peer.ask((id) => `publish ${id} ${key('state')}`, text.bytes)
      await peer.ask((id) => `presence ${id} room.${own} op=enter member=${'m'.repeat(22)}`, text.bytes)
      await goesOn(`after the messages: ${text.name}`)

      await adapter.call({ do: 'readStream', client: 'c', reader: key('r'), key: key('stream') })
      await peer.ask((id) => `stream ${id} ${key('stream')} of=S seq=0 kind=start`, text.bytes)
      await peer.ask((id) => `stream ${id} ${key('stream')} of=S seq=1 kind=append`, text.bytes)
      await goesOn(`after the stream: ${text.name}`)

      // An adapter writes as JSON what it was replied: it may not be able to write what is deep.
      if (text.depth <= MAX_DEPTH + 1) {
        await peer.ask((id) => `listen ${id} ${key('ask')} group=g respond`)
        const asked = adapter.call({ do: 'request', client: 'c', key: key('ask'), payload: 1 }).catch(String)
        const task = await peer.next(({ verb }) => verb === 'task')
        const [, request = ''] = / request=(\S+)/.exec(task?.header ?? '') ?? []
        peer.send(`reply ${request}`, text.bytes)
        await asked
        await goesOn(`after the reply: ${text.name}`)
      }
      peer.close()
    },
    CLIENT_MS,
  )
})

for (const missing of MISSING) it.skip(missing, () => undefined)
