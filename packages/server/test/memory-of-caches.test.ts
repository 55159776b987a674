import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fingerprintOfSource } from '../src/brokers/log/fingerprint.js'
import { mayPublish } from '../src/identity/access.js'
import { inboundDefect } from '../src/ports/inbound-check.js'
import { ApiServer } from './api-server.js'

const COUNT = 20_000
const MAX_GROWTH_BYTES = 4 * 1_048_576
const SOURCES = fileURLToPath(new URL('../src', import.meta.url))

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Memory that is in use: objects, and bytes beside the heap. */
function usedBytes(): number {
  // What a finalizer frees is gone after the second time.
  for (let round = 0; round < 3; round++) collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Bytes that are still in use after calls with 0 to `COUNT` - 1, beside those of some first calls. */
async function growthOf(call: (index: number) => unknown, warmUpCount = COUNT): Promise<number> {
  for (let index = 0; index < warmUpCount; index++) await call(index)
  const before = usedBytes()
  for (let index = 0; index < COUNT; index++) await call(warmUpCount + index)
  return usedBytes() - before
}

/** Everything of a module that may grow, and why it does not. Types that begin with `Readonly` cannot. */
const HELD: Readonly<Record<string, string>> = {
  'base/answer-early.ts prepared': 'ends with each answer',
  'base/log-bug.ts paces': 'ends with each logger; a few messages each',
  'brokers/log/fingerprint.ts nodeHashes': 'cleared with 1,024',
  'brokers/log/fingerprint.ts lastNode': 'one',
  'brokers/log/fingerprint.ts lastNodeHash': 'one',
  'brokers/nats/stream-message.ts lead': 'one',
  'brokers/rabbitmq/log-record.ts lastHeader': 'one',
  'brokers/remote/envelope.ts knownNodes': '256 places',
  'brokers/remote/envelope.ts ownNode': 'one',
  'base/logger.ts ownLoggers': 'ends with each logger',
  'cli/doctor/target.ts trust': 'one',
  'hooks/webhooks/questions.ts PASSED_ON': 'constant',
  'http/api/api.ts TABLE': 'constant',
  'http/metrics.ts loaded': 'one',
  'identity/access.ts compiledGrants': 'ends with each identity; 256 answers each',
  'identity/token-verifier.ts judge': 'one',
  'node/api.ts validKey': 'one',
  'patterns/pattern-index.ts NO_CHILDREN': 'constant',
  'ports/attributes.ts TEXT_NAMES': 'constant',
  'ports/inbound-check.ts validKeys': 'cleared with 8,192',
  'ports/inbound-check.ts lastValidKey': 'one',
  'ports/position.ts blockEpoch': 'one',
  'ports/position.ts blockNumber': 'one',
  'ports/position.ts blockText': 'one',
  'session/id.ts usedBytes': 'one',
  'streams/writer.ts PASSING': 'constant',
  'transports/upgrade/rejection.ts OWN_HEADERS': 'constant',
  'transports/upgrade/take-upgrades.ts wanted': 'ends with each listener',
  'transports/upgrade/text-request.ts LINE_STARTS': 'constant',
}

const VARIABLE = /^(?:export )?(?:let|var) (\w+)/gm
const CONSTANT =
  /^(?:export )?const (\w+)(?:: ([^=]*?))? =\s+(?:new (?:Map|Set|WeakMap|WeakSet|Array)\b|\[\]|\{\}$|Object\.create\()/gm

function heldOf(file: string): string[] {
  const text = readFileSync(`${SOURCES}/${file}`, 'utf8')
  const constants = Array.from(text.matchAll(CONSTANT)).filter(([, , type = '']) => !/^readonly/i.test(type))
  return [...text.matchAll(VARIABLE), ...constants].map(([, name]) => `${file} ${name}`)
}

it('has a row for each thing of a module that may grow', () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  expect(files.length).toBeGreaterThan(300)
  expect(files.flatMap(heldOf).toSorted()).toEqual(Object.keys(HELD).toSorted())
})

describe('what a module remembers stays small', () => {
  const fills: Readonly<Record<string, (index: number) => unknown>> = {
    'keys of messages of a broker': (index) => inboundDefect(`key.of.some.length.${index}`, Buffer.alloc(0), 100),
    'nodes of messages of a log': (index) => fingerprintOfSource({ node: `node-${index}`, sequence: 1 }, 1),
    'grants of identities': (index) => {
      const grants = [{ keys: ['chat.#'], allow: ['publish' as const] }]
      return mayPublish(
        { userId: `user-${index}`, grants, claims: undefined, expiresAtMs: undefined } as never,
        'chat.1',
      )
    },
  }

  it.each(Object.entries(fills))('%s', async (_, fill) => {
    expect(await growthOf(fill)).toBeLessThan(MAX_GROWTH_BYTES)
  })
})

/** Asks on one connection, each time once all of some requests are answered. */
async function asking(port: number) {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return async (requests: readonly string[]) => {
    let left = requests.length
    const answered = new Promise<void>((resolve, reject) => {
      socket.once('close', () => reject(new Error('the connection was closed')))
      socket.on('data', (chunk: Buffer) => {
        const answers = chunk.toString('latin1').match(/HTTP\/1\.1 (\d+)/g) ?? []
        const odd = answers.find((answer) => !answer.endsWith(' 200'))
        if (odd !== undefined) reject(new Error(odd))
        left -= answers.length
        if (left <= 0) resolve()
      })
    })
    socket.write(requests.join(''))
    await answered
    socket.removeAllListeners('data').removeAllListeners('close')
  }
}

const PIPELINED = 8
const CREDENTIAL = 'Authorization: Bearer api-key-of-32-bytes-for-the-tests'
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${CREDENTIAL}\r\n\r\n`

// Symptom: each GET of an ended stream took 0.2 MiB for good. Cause: a map of the module had the streams as its keys, and counted
// their encoded texts alone.
describe('20,000 requests leave nothing behind', { timeout: 120_000 }, () => {
  it.each(['/streams/a', '/api/streams?key=a'])('GET %s', async (path) => {
    const api = await ApiServer.start({ history: ['#=1000'] })
    onTestFinished(() => api.server.stop({ drainMs: 0 }))
    const writer = await api.server.stream('a', { meta: 'x'.repeat(10_000) })
    await writer.append('hello')
    await writer.end()
    const ask = await asking(api.port)
    const round = () => ask(Array.from({ length: PIPELINED }, () => get(path)))
    for (let count = 0; count < 400; count += PIPELINED) await round()
    const before = usedBytes()
    for (let count = 0; count < COUNT; count += PIPELINED) await round()
    expect(usedBytes() - before).toBeLessThan(MAX_GROWTH_BYTES)
  })

  // Symptom: an idle stream took 18 kB, which nobody counted. Cause: what the node called with its messages was made beside the
  // request that began it, and kept it.
  it('but streams, without the requests that began them', async () => {
    const api = await ApiServer.start({ history: ['#=1000'] })
    onTestFinished(() => api.server.stop({ drainMs: 0 }))
    const streamCount = 800
    const filler = 'x'.repeat(7_000)
    const before = usedBytes()
    const headers = { authorization: CREDENTIAL.slice('Authorization: '.length) }
    for (let index = 0; index < streamCount; index++)
      await fetch(`${api.url}/streams/a.key.of.some.length.${index}?${filler}`, { method: 'PUT', headers })
    expect(usedBytes() - before).toBeLessThan(streamCount * 4_096 + MAX_GROWTH_BYTES)
  })
})
