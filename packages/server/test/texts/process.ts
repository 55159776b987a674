import type { WebMQServer } from '../../src/index.js'
import { type Door, type Expected, isTooDeep, isUnspeakable, lookedInto, memberOutcome, opaque } from './door.js'
import type { House } from './house.js'
import { PATIENCE_MS } from './peer.js'
import { comparison, type HostileText } from './texts.js'

/** As a value of the process: of a text that is no JSON, the string. */
function valueIn({ isJson, bytes }: HostileText): unknown {
  return isJson ? JSON.parse(bytes.toString()) : bytes.toString()
}

/** What JSON says of the value. */
function saidOf(text: HostileText): HostileText {
  if (text.isJson) return text
  return { ...text, bytes: Buffer.from(JSON.stringify(text.bytes.toString())), isJson: true }
}

async function outcomeOf(act: () => Promise<string>): Promise<string> {
  try {
    return await act()
  } catch (error) {
    const { code, name } = error as { readonly code?: string; readonly name?: string }
    return code?.startsWith('E_') ? `refused ${code}` : `thrown: ${name} ${error}`
  }
}

function door(
  name: string,
  give: (server: WebMQServer, text: HostileText, key: string, house: House) => Promise<string>,
  expected: Expected,
  mayTell = false,
): Door<House> {
  return {
    name: `process: ${name}`,
    expected,
    mayTell,
    give: (house, text) => outcomeOf(() => give(house.api.server, text, house.key(), house)),
  }
}

const REFUSED = 'refused E_PAYLOAD_INVALID'
/** Numbers and repeated members are JavaScript's own. */
const said: Expected = (text) => (isUnspeakable(text) ? REFUSED : ['as written', 'rewritten'])
const saidAndLookedInto: Expected = (text) =>
  isUnspeakable(text) || isTooDeep(text) ? REFUSED : ['as written', 'rewritten']

/** What a function of the process got, as JSON. */
const gotten = (text: HostileText, value: unknown) => {
  // Two values of 100,000 levels cannot be compared but by their first.
  if (isUnspeakable(text)) return typeof value === typeof valueIn(text) ? 'as written' : `other: ${typeof value}`
  return value === undefined && text.bytes.length === 0 ? 'as written' : comparison(text, JSON.stringify(value))
}

/** A text over the wire, for a function of the process: of one that is no JSON it is told a gap. */
const forFunctions: Expected = (text) => {
  if (text.bytes.length === 0) return 'as written'
  if (!text.isUtf8) return 'closed 1007'
  return text.isJson ? ['as written', 'rewritten'] : 'gap refused'
}

/** A reply that is no JSON never comes. */
const REQUEST_TIMEOUT_MS = 2_000

/** The doors of each function of a server. One without a row does not compile. */
const BY_FUNCTION = {
  publish: [
    door(
      'publish, a value',
      async (server, text, key, house) => {
        await server.publish(key, valueIn(text))
        return comparison(saidOf(text), await house.arrived(key))
      },
      said,
    ),
    door(
      'publish, bytes',
      async (server, text, key, house) => {
        await server.publish(key, new Uint8Array(text.bytes))
        return comparison(text, await house.arrived(key))
      },
      opaque,
    ),
  ],
  publishBatch: [
    door(
      'publishBatch, a value',
      async (server, text, key, house) => {
        await server.publishBatch([{ key, payload: valueIn(text) }])
        return comparison(saidOf(text), await house.arrived(key))
      },
      said,
    ),
  ],
  listen: [
    door(
      'listen, what a client publishes',
      async (server, text, key, house) => {
        const peer = await house.peer()
        let timer: NodeJS.Timeout | undefined
        const came = new Promise<string>((resolve) => {
          const subscription = server.listen(
            key,
            (value) => {
              resolve(gotten(text, value))
              subscription.close()
            },
            { onGap: ({ reason }) => resolve(`gap ${reason}`) },
          )
          timer = setTimeout(() => resolve('nothing came'), PATIENCE_MS)
        })
        const refusal = peer.refusalIn(await peer.ask((id) => `publish ${id} ${key}`, text.bytes))
        const outcome = refusal ?? (await came)
        clearTimeout(timer)
        peer.close()
        return outcome
      },
      forFunctions,
    ),
  ],
  history: [
    door(
      'history, what a client publishes',
      async (server, text, key, house) => {
        const peer = await house.peer()
        const refusal = peer.refusalIn(await peer.ask((id) => `publish ${id} ${key}`, text.bytes))
        peer.close()
        if (refusal !== undefined) return refusal
        const { messages } = await server.history(key)
        return gotten(text, messages[0]?.payload)
      },
      // docs: E_PAYLOAD_INVALID, a text message is not JSON.
      (text) => {
        const expected = forFunctions(text)
        return expected === 'gap refused' ? REFUSED : expected
      },
    ),
  ],
  respond: [
    door(
      'respond, what a client asks',
      async (server, text, key, house) => {
        const peer = await house.peer()
        let asked = 'nothing came'
        const { ready } = server.respond(key, (value) => {
          asked = gotten(text, value)
          return null
        })
        await ready
        const refusal = peer.refusalIn(await peer.ask((id) => `request ${id} ${key}`, text.bytes))
        const reply = refusal === undefined ? await peer.next(({ verb }) => verb === 'reply') : undefined
        peer.close()
        if (refusal !== undefined) return refusal
        return reply?.header.endsWith(' error') ? `error ${/"code":"(\w+)"/.exec(String(reply.body))?.[1]}` : asked
      },
      (text) => {
        if (!text.isUtf8) return 'closed 1007'
        if (text.isJson) return ['as written', 'rewritten']
        return ['error E_PAYLOAD_INVALID', 'error E_RESPONSE', 'as written']
      },
    ),
    door(
      'respond, what a function replies',
      async (server, text, key, house) => {
        const peer = await house.peer()
        await server.respond(key, () => valueIn(text)).ready
        await peer.ask((id) => `request ${id} ${key}`, Buffer.from('1'))
        const reply = await peer.next(({ verb }) => verb === 'reply')
        peer.close()
        if (reply?.header.endsWith(' error')) return `error ${/"code":"(\w+)"/.exec(String(reply.body))?.[1]}`
        return comparison(saidOf(text), reply?.body)
      },
      (text) => (isUnspeakable(text) ? ['error E_RESPONSE', 'error E_PAYLOAD_INVALID'] : ['as written', 'rewritten']),
      true,
    ),
  ],
  request: [
    door(
      'request, a value, and the reply of a client',
      async (server, text, key, house) => {
        const peer = await house.peer()
        await peer.ask((id) => `listen ${id} ${key} group=g respond`)
        const asked = server.request(key, valueIn(text), { timeoutMs: REQUEST_TIMEOUT_MS })
        asked.catch(() => undefined) // Awaited below.
        const task = await Promise.race([peer.next(({ verb }) => verb === 'task'), asked.then(() => undefined)])
        const [, request = ''] = / request=(\S+)/.exec(task?.header ?? '') ?? []
        peer.send(`reply ${request}`, text.bytes)
        const reply = await asked.finally(() => peer.close())
        return [...new Set([comparison(saidOf(text), task?.body), gotten(text, reply)])].join(', then ')
      },
      (text) => {
        if (isUnspeakable(text) || !text.isJson) return [REFUSED, 'refused E_TIMEOUT', 'refused E_RESPONSE']
        return ['as written', 'rewritten', 'rewritten, then as written', 'as written, then rewritten']
      },
    ),
  ],
  stream: [
    door(
      'stream, its meta',
      async (server, text, key) => {
        const writer = await server.stream(key, { meta: valueIn(text) })
        await writer.end()
        const { meta } = await server.readStream(key)
        return gotten(saidOf(text), meta)
      },
      saidAndLookedInto,
    ),
    door(
      'stream, its result',
      async (server, text, key) => {
        const writer = await server.stream(key)
        try {
          await writer.end(valueIn(text))
        } finally {
          await writer.end().catch(() => undefined)
        }
        return gotten(saidOf(text), (await server.readStream(key)).result)
      },
      saidAndLookedInto,
    ),
    door(
      'stream, an append',
      async (server, text, key) => {
        const writer = await server.stream(key)
        await writer.append(text.bytes.toString())
        await writer.end()
        const { text: whole } = await server.readStream(key)
        return whole === text.bytes.toString() ? 'as written' : 'other'
      },
      opaque,
    ),
  ],
  readStream: [
    door(
      'stream, and readStream of what a client writes',
      async (server, text, key, house) => {
        const peer = await house.peer()
        const write = (kind: string, sequence: number, body: Uint8Array) =>
          peer.ask((id) => `stream ${id} ${key} of=S seq=${sequence} kind=${kind}`, body)
        const refusal =
          peer.refusalIn(await write('start', 0, text.bytes)) ?? peer.refusalIn(await write('end', 1, new Uint8Array()))
        peer.close()
        return refusal ?? gotten(text, (await server.readStream(key)).meta)
      },
      (text) => {
        if (!text.isUtf8) return 'closed 1007'
        const expected = lookedInto(text)
        return expected === 'as written' ? ['as written', 'rewritten'] : expected
      },
    ),
  ],
  presence: [
    door(
      'presence, the data of a client',
      async (server, text, key, house) => {
        const peer = await house.peer()
        const entered = await peer.ask((id) => `presence ${id} ${key} op=enter member=${'m'.repeat(22)}`, text.bytes)
        const refusal = peer.refusalIn(entered)
        if (refusal !== undefined) return refusal
        const [member] = await server.presence(key)
        peer.close()
        const json = member === undefined ? undefined : Buffer.from(JSON.stringify(member))
        return memberOutcome(text, json, 'data')
      },
      (text) => {
        if (!text.isUtf8) return 'closed 1007'
        if (text.bytes.length > 65_536) return 'refused E_PAYLOAD_TOO_LARGE'
        if (text.bytes.length === 0) return ['as written', REFUSED]
        if (text.name === '1e400') return [REFUSED, 'rewritten']
        const expected = lookedInto(text)
        return expected === 'as written' ? ['as written', 'rewritten'] : expected
      },
    ),
  ],
  // They take and give no text of others.
  address: [],
  adminAddress: [],
  start: [],
  attach: [],
  handleRequest: [],
  reload: [],
  reopenAuditLog: [],
  stop: [],
  on: [],
  stats: [],
} as const satisfies Record<keyof WebMQServer, readonly Door<House>[]>

export const PROCESS_DOORS: readonly Door<House>[] = Object.values(BY_FUNCTION).flat()
