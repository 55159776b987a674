import type { HookMessage, HookName, Hooks, PresenceRequest } from '../../src/doors/options/hooks.js'
import type { Backend } from '../hooks/backend.js'
import { type Door, type Expected, inTextFrame, isTooDeep, isUnspeakable, memberOutcome } from './door.js'
import type { House } from './house.js'
import { comparison, type HostileText, MAX_DEPTH, TEXTS } from './texts.js'

const HOOKED = 'hooked'
/** A hook that gives no value: its answer says nothing, and the text passes as it is. */
const NOTHING = {}

function valueIn(read: () => unknown, name: string): object {
  try {
    const value = read()
    return value === undefined ? NOTHING : { [name]: value }
  } catch {
    // It is no JSON.
    return NOTHING
  }
}

const withPayload = ({ key, json }: HookMessage) => (key.startsWith(HOOKED) ? valueIn(json, 'payload') : undefined)
const withData = ({ key, data }: PresenceRequest) => (key.startsWith(HOOKED) ? valueIn(data, 'data') : undefined)

/** Each answers with what it was asked about, parsed. */
export const ECHOING_HOOKS: Hooks = { publish: withPayload, presence: withData }
/** As {@link ECHOING_HOOKS}, when a message is delivered. */
export const DELIVERING_HOOKS: Hooks = { deliver: withPayload }

const HOOK_REFUSALS = ['refused E_HOOK_FAILED', 'refused E_PAYLOAD_INVALID']
const SAME = ['as written', 'rewritten']
/** A value of JavaScript comes back, which is looked into only as far as it must be, or the answer makes no sense. */
const answered: Expected = (text) => {
  if (isUnspeakable(text)) return HOOK_REFUSALS
  return text.isJson ? SAME : 'as written'
}

async function publishOutcome(house: House, text: HostileText): Promise<string> {
  const [peer, key] = [await house.peer(), house.key(HOOKED)]
  const refusal = peer.refusalIn(await peer.ask((id) => `publish ${id} ${key}`, text.bytes))
  peer.close()
  return refusal ?? comparison(text, await house.arrived(key))
}

async function presenceOutcome(house: House, text: HostileText): Promise<string> {
  const [peer, key] = [await house.peer(), house.key(HOOKED)]
  const entered = await peer.ask((id) => `presence ${id} ${key} op=enter member=${'m'.repeat(22)}`, text.bytes)
  const refusal = peer.refusalIn(entered)
  const members = refusal === undefined ? await peer.ask((id) => `presence ${id} ${key} op=get`) : undefined
  peer.close()
  return refusal ?? memberOutcome(text, members?.body, 'data')
}

const ofPresence: Expected = (text) => {
  if (text.bytes.length === 0) return ['as written', ...HOOK_REFUSALS]
  const large = 'refused E_PAYLOAD_TOO_LARGE'
  if (!text.isJson) return [...HOOK_REFUSALS, large]
  if (isTooDeep(text)) return HOOK_REFUSALS
  return [answered(text)].flat().concat(text.bytes.length > 65_536 ? [large] : [])
}

/** The doors of each hook of the process. A hook without a row does not compile. */
const BY_HOOK = {
  publish: [
    {
      name: 'hooks: publish, which answers with it',
      give: publishOutcome,
      expected: inTextFrame(answered),
      mayTell: true,
    },
  ],
  presence: [
    {
      name: 'hooks: presence, which answers with it',
      give: presenceOutcome,
      expected: inTextFrame(ofPresence),
      mayTell: true,
    },
  ],
  // They are shown no text of the kind, or answer nothing.
  connect: [],
  listen: [],
  deliver: [],
  disconnect: [],
} as const satisfies Record<HookName, readonly Door<House>[]>

export const HOOK_DOORS: readonly Door<House>[] = Object.values(BY_HOOK).flat()

/** A message that the hook cannot answer for is dropped, and its listeners are told a gap. */
export const DELIVER_DOORS: readonly Door<House>[] = [
  {
    name: 'hooks: deliver, which answers with it',
    mayTell: true,
    async give(house, text) {
      const [peer, key] = [await house.peer(), house.key(HOOKED)]
      const before = house.reader.frames.length
      const refusal = peer.refusalIn(await peer.ask((id) => `publish ${id} ${key}`, text.bytes))
      peer.close()
      if (refusal !== undefined) return refusal
      const { reader } = house
      const told = await reader.next(
        (frame) => reader.frames.indexOf(frame) >= before && (frame.verb === 'gap' || frame.name === key),
      )
      return told?.verb === 'gap' ? told.header : comparison(text, told?.body)
    },
    expected: inTextFrame((text) => {
      if (isUnspeakable(text)) return 'gap # refused'
      return text.isJson ? SAME : 'as written'
    }),
  },
]

/** A back end that answers questions with bytes of its own. */
export function webhookDoors(backend: () => Backend): readonly Door<House>[] {
  const answering =
    (name: string | undefined, outcome: (house: House) => Promise<string>): Door<House>['give'] =>
    async (house, { bytes }) => {
      backend().answer = ({ json }, response) => {
        if (!String(json.key).startsWith(HOOKED)) return undefined
        const body = name === undefined ? bytes : Buffer.concat([Buffer.from(`{"${name}":`), bytes, Buffer.from('}')])
        response.writeHead(200, { 'content-type': 'application/json' }).end(body)
        return 'none'
      }
      return await outcome(house)
    }
  const honest = TEXTS[0] as HostileText
  return [
    {
      name: 'webhook: the answer is the text',
      mayTell: true,
      give: async (house, text) => await answering(undefined, () => publishOutcome(house, honest))(house, text),
      // Of no text is it an answer: each has unknown members, or is no object. Nothing says nothing.
      expected: ({ bytes }) => (bytes.length === 0 ? 'as written' : HOOK_REFUSALS),
    },
    {
      name: 'webhook: it answers with the payload',
      mayTell: true,
      give: async (house, text) =>
        await answering('payload', async () => {
          const [peer, key] = [await house.peer(), house.key(HOOKED)]
          const refusal = peer.refusalIn(await peer.ask((id) => `publish ${id} ${key}`, Buffer.from('1')))
          peer.close()
          return refusal ?? comparison(text, await house.arrived(key))
        })(house, text),
      expected: ofAnswer,
    },
    {
      name: 'webhook: it answers with the data of a member',
      mayTell: true,
      give: async (house, text) =>
        await answering('data', async () => {
          const [peer, key] = [await house.peer(), house.key(HOOKED)]
          const enter = (id: string) => `presence ${id} ${key} op=enter member=${'m'.repeat(22)}`
          const refusal = peer.refusalIn(await peer.ask(enter, Buffer.from('1')))
          const members = refusal === undefined ? await peer.ask((id) => `presence ${id} ${key} op=get`) : undefined
          peer.close()
          return refusal ?? memberOutcome(text, members?.body, 'data')
        })(house, text),
      expected: (text) =>
        [ofAnswer(text)].flat().concat(text.bytes.length > 65_536 ? ['refused E_PAYLOAD_TOO_LARGE'] : []),
    },
  ]
}

/** A back end's digits are kept, as those of any publisher. */
const ofAnswer: Expected = (text) => {
  if (text.name === '1e400') return ['as written', ...HOOK_REFUSALS]
  if (!text.isJson || isTooDeep(text)) return HOOK_REFUSALS
  // An answer has a level of its own, and a limit of its size.
  if (text.depth === MAX_DEPTH || text.bytes.length > 900_000) return [...SAME, ...HOOK_REFUSALS]
  return text.isPlain || text.name.includes('twice') ? SAME : 'as written'
}
