import type { ClientVerb, WriteKind } from 'webmq-client/protocol'
import { type Door, type Expected, inTextFrame, lookedInto, memberOutcome, type NodeAccess, opaque } from './door.js'
import type { Peer, RawFrame } from './peer.js'
import { comparison, type HostileText, isString } from './texts.js'

const MEMBER = 'm'.repeat(22)

/** Brings a text in with a connection of its own. */
function door(
  name: string,
  give: (house: NodeAccess, peer: Peer, text: HostileText, key: string) => Promise<string>,
  expected: Expected,
  prefix?: string,
): Door {
  return {
    name: `WebSocket: ${name}`,
    expected,
    async give(house, text) {
      const peer = await house.peer()
      try {
        return await give(house, peer, text, house.key(prefix))
      } finally {
        peer.close()
      }
    },
  }
}

/** The verb has no payload: what comes behind its header is not looked at. */
function bodyless(header: (id: string, key: string) => string, outcome = 'as without it'): Door {
  const name = `${header('', '').split(' ')[0]}, with a body that it has not`
  return door(
    name,
    async (_house, peer, { bytes }, key) => {
      const before = peer.frames.length
      peer.send(header('x', key), bytes)
      const answer = await peer.next((frame) => peer.frames.indexOf(frame) >= before)
      return peer.refusalIn(answer) ?? 'as without it'
    },
    inTextFrame(() => outcome),
  )
}

/** Writes a stream of the messages before, then the one with the text. */
function streamDoor(kind: WriteKind, expected: Expected): Door {
  return door(
    `stream, ${kind}`,
    async (_house, peer, text, key) => {
      const stream = `S${key.replaceAll('.', '-')}`
      const write = (sequence: number, kind: WriteKind, body: Uint8Array = new Uint8Array()) =>
        peer.ask((id) => `stream ${id} ${key} of=${stream} seq=${sequence} kind=${kind}`, body)
      if (kind !== 'start') await write(0, 'start')
      const sequence = kind === 'start' || kind === 'beat' ? 0 : 1
      const refusal = peer.refusalIn(await write(sequence, kind, text.bytes))
      if (refusal !== undefined) return refusal
      const read = await peer.ask((id) => `read ${id} ${key}`)
      if (kind === 'start') return memberOutcome(text, read?.body, 'meta')
      if (kind !== 'append') return memberOutcome(text, read?.body, 'result')
      return comparison(text, (await peer.next(isMessageOf(key)))?.body)
    },
    inTextFrame(expected),
  )
}

const isMessageOf =
  (key: string) =>
  ({ verb, name }: RawFrame): boolean =>
    verb === 'message' && name === key

const nothingElse: Expected = ({ bytes }) => (bytes.length === 0 ? 'as written' : 'refused E_PAYLOAD_INVALID')
const onlyStrings: Expected = (text) => (isString(text) ? 'as written' : 'refused E_PAYLOAD_INVALID')

const STREAM_DOORS = {
  start: streamDoor('start', lookedInto),
  append: streamDoor('append', onlyStrings),
  beat: streamDoor('beat', nothingElse),
  end: streamDoor('end', lookedInto),
  fail: streamDoor('fail', lookedInto),
  stop: streamDoor('stop', nothingElse),
} as const satisfies Record<WriteKind, Door>

/** The doors of each verb. A verb without a row does not compile. */
const BY_VERB = {
  auth: [
    door(
      'auth, as the token',
      async (_house, peer, { bytes }) => peer.refusalIn(await peer.ask((id) => `auth ${id}`, bytes)) ?? 'accepted',
      // A token is a line of visible ASCII.
      inTextFrame(() => ['refused E_MESSAGE_INVALID', 'refused E_TOKEN_INVALID']),
    ),
  ],
  publish: [
    door(
      'publish, acknowledged',
      async (house, peer, text, key) => {
        const refusal = peer.refusalIn(await peer.ask((id) => `publish ${id} ${key}`, text.bytes))
        return refusal ?? comparison(text, await house.arrived(key))
      },
      inTextFrame(opaque),
    ),
    door(
      'publish, not acknowledged',
      async (house, peer, text, key) => {
        peer.send(`publish - ${key}`, text.bytes)
        peer.send('ping')
        const refusal = peer.refusalIn(await peer.next(({ verb }) => verb === 'pong' || verb === 'error'))
        return refusal ?? comparison(text, await house.arrived(key))
      },
      inTextFrame(opaque),
    ),
    door(
      'publish, ephemeral',
      async (house, peer, text, key) => {
        const refusal = peer.refusalIn(await peer.ask((id) => `publish ${id} ${key} ephemeral`, text.bytes))
        return refusal ?? comparison(text, await house.arrived(key))
      },
      inTextFrame(opaque),
    ),
    door(
      'publish, retained',
      async (_house, peer, text, key) => {
        const refusal = peer.refusalIn(await peer.ask((id) => `publish ${id} ${key}`, text.bytes))
        if (refusal !== undefined) return refusal
        await peer.ask((id) => `listen ${id} ${key} state`)
        return comparison(text, (await peer.next(isMessageOf(key)))?.body)
      },
      inTextFrame(opaque),
      'state',
    ),
  ],
  request: [
    door(
      'request',
      async (house, peer, text, key) => {
        const responder = await house.peer()
        await responder.ask((id) => `listen ${id} ${key} group=g respond`)
        const refusal = peer.refusalIn(await peer.ask((id) => `request ${id} ${key}`, text.bytes))
        const task = refusal ?? comparison(text, (await responder.next(({ verb }) => verb === 'task'))?.body)
        responder.close()
        return task
      },
      inTextFrame(opaque),
    ),
  ],
  reply: [
    door(
      'reply',
      async (house, peer, text, key) => {
        const asker = await house.peer()
        try {
          await peer.ask((id) => `listen ${id} ${key} group=g respond`)
          await asker.ask((id) => `request ${id} ${key}`, Buffer.from('1'))
          const task = await peer.next(({ verb }) => verb === 'task')
          const [, request = ''] = / request=(\S+)/.exec(task?.header ?? '') ?? []
          peer.send(`reply ${request}`, text.bytes)
          peer.send('ping')
          const refusal = peer.refusalIn(await peer.next(({ verb }) => verb === 'pong' || verb === 'error'))
          if (refusal !== undefined) return refusal
          return comparison(text, (await asker.next(({ verb }) => verb === 'reply'))?.body)
        } finally {
          asker.close()
        }
      },
      inTextFrame(opaque),
    ),
  ],
  presence: [
    door(
      'presence, data of a member',
      async (house, peer, text, key) => {
        await house.reader.ask((id) => `presence ${id} ${key} op=watch`)
        const entered = await peer.ask((id) => `presence ${id} ${key} op=enter member=${MEMBER}`, text.bytes)
        const refusal = peer.refusalIn(entered)
        if (refusal !== undefined) return refusal
        const members = await peer.ask((id) => `presence ${id} ${key} op=get`)
        const told = await house.reader.next(({ verb, name }) => verb === 'presence' && name === key)
        const outcomes = [members, told].map((frame) => memberOutcome(text, frame?.body, 'data'))
        return [...new Set(outcomes)].join(', then ')
      },
      inTextFrame((text) => {
        if (text.bytes.length > 65_536) return 'refused E_PAYLOAD_TOO_LARGE'
        const expected = lookedInto(text)
        if (text.bytes.length === 0) return ['as written', 'refused E_PAYLOAD_INVALID']
        // Members are compared: spaces, escapes and repetitions may be written in one way. Digits are kept.
        return expected === 'as written' && (text.isPlain || text.name.includes('twice'))
          ? ['as written', 'rewritten']
          : expected
      }),
    ),
  ],
  stream: Object.values(STREAM_DOORS),
  listen: [bodyless((id, key) => `listen ${id} ${key}`)],
  unlisten: [bodyless((id) => `unlisten ${id} #`, 'refused E_NOT_LISTENING')],
  history: [bodyless((id, key) => `history ${id} ${key}`)],
  read: [bodyless((id, key) => `read ${id} ${key}`)],
  ping: [bodyless(() => 'ping')],
} as const satisfies Record<ClientVerb, readonly Door[]>

export const WEBSOCKET_DOORS: readonly Door[] = Object.values(BY_VERB).flat()
