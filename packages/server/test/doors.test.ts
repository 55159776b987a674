import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from 'webmq-conformance'
import { API_KEY, ApiServer, SECRET } from './api-server.js'
import { Backend } from './hooks/backend.js'
import { ProtocolClient } from './protocol-client.js'
import { SseReader } from './sse-reader.js'

// What every door of the server does with a request, and what is left of it: an audit line, a count, a notice.

const MAX_PAYLOAD_BYTES = 1_000
const LARGE = 'x'.repeat(MAX_PAYLOAD_BYTES)
const GRANTS = [{ keys: ['open.#', 'hooked.#'], allow: ['listen', 'publish', 'presence'] }]

type Row = Record<string, unknown>

let folder: string
let backend: Backend
let house: ApiServer
const uncaught: unknown[] = []
const note = (error: unknown) => uncaught.push(error)

beforeAll(async () => {
  process.on('unhandledRejection', note)
  folder = mkdtempSync(join(tmpdir(), 'webmq-doors-'))
  backend = await Backend.start()
  const refuse = { refuse: { code: 'E_NO_CREDIT', message: 'pay first' } }
  house = await ApiServer.start({
    jwt: { secret: SECRET },
    maxPayloadBytes: MAX_PAYLOAD_BYTES,
    trustedProxies: ['127.0.0.1'],
    auditLog: join(folder, 'audit.log'),
    webhook: { url: backend.url, events: ['published'] },
    hooks: {
      publish: ({ key }) => {
        if (key === 'hooked.slow') return Promise.resolve(refuse)
        return key.startsWith('hooked.') ? refuse : undefined
      },
      listen: ({ pattern }) => (pattern.startsWith('hooked.') ? refuse : undefined),
      presence: ({ key }) => (key.startsWith('hooked.') ? refuse : undefined),
    },
  })
})

afterAll(async () => {
  await house.server.stop({ drainMs: 0 })
  await backend[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
  process.off('unhandledRejection', note)
  expect(uncaught).toEqual([])
})

/** A token of a user, whose limits may differ. */
async function tokenOf(user: string, limits: object = {}): Promise<string> {
  return await new SignJWT({ webmq: { grants: GRANTS, limits } })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(user)
    .setExpirationTime('1h')
    .sign(new TextEncoder().encode(SECRET))
}

const bearer = async (user: string, limits?: object) => ({ authorization: `Bearer ${await tokenOf(user, limits)}` })
const HASTY = { maxPublishesPerSecondPerUser: 1 }
const NO_LISTENS = { maxListensPerUser: 0 }

/** Connects as a user, and resolves with the code of the answer: `ok`, or of an error. */
async function overWebSocket(user: string, act: (client: ProtocolClient) => Promise<string>, limits?: object) {
  const client = await ProtocolClient.open(house.webSocketUrl, { headers: await bearer(user, limits) })
  try {
    return await act(client)
  } finally {
    client.socket.terminate()
  }
}

async function sent(client: ProtocolClient, message: Row): Promise<string> {
  const answer = await client.request((id) => ({ ...message, id }) as never)
  return answer.verb === 'ok' ? 'ok' : answer.code
}

const published =
  (key: string, payload = '1') =>
  (client: ProtocolClient) =>
    sent(client, { verb: 'publish', key, payload, echo: true })
const listening = (pattern: string) => (client: ProtocolClient) => sent(client, { verb: 'listen', pattern })

/** Publishes until one is refused: a burst passes. */
async function hurried(once: () => Promise<string>): Promise<string> {
  for (let count = 0; count < 20; count++) {
    const answer = await once()
    if (answer !== 'ok') return answer
  }
  return 'ok'
}

/** Each request over HTTP comes from an address of its own: an address gets few lines per second. */
let callerCount = 0

/** Asks the HTTP API, and resolves with `ok` or with the status and the code of the refusal. */
async function overHttp(path: string, headers: Record<string, string>, body?: object): Promise<string> {
  const { status, json } = await house.ask(path, {
    bearer: '',
    headers: { ...headers, 'x-forwarded-for': `203.0.113.${++callerCount}` },
    body,
  })
  return status === 200 ? 'ok' : `${status} ${String(json.code)}`
}

const posted = (headers: Record<string, string>, key: string, payload: unknown = 1) =>
  overHttp('/api/publish', headers, { key, payload })

/** Opens an event stream, and resolves with `ok` or with the code of the refusal. */
async function streamed(pattern: string, headers: Record<string, string>): Promise<string> {
  const reader = new SseReader(house.port, `listen=${encodeURIComponent(pattern)}`, headers)
  const { statusCode } = await reader.client.response()
  if (statusCode !== 200) return `${statusCode} ${String((await reader.refusal()).code)}`
  return await eventually(() => {
    if (reader.named('live').length > 0) return 'ok'
    const [refused] = reader.named('refused')
    if (refused === undefined) throw new Error('no answer yet')
    return String(refused.data.code)
  })
}

async function rejected(act: () => Promise<unknown>): Promise<string> {
  return await act().then(
    () => 'ok',
    (error: { readonly code: string }) => error.code,
  )
}

const operator = { authorization: `Bearer ${API_KEY}` }
const stranger = { authorization: 'Bearer not-a-token-and-not-a-key' }

function auditLines(): Row[] {
  return readFileSync(join(folder, 'audit.log'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row)
}

/** Counts of the server that refusals move, by name. */
function counts(): Record<string, number> {
  const stats = house.server.stats()
  const groups: Record<string, object> = {
    refused: stats.refusedCounts,
    upgrades: stats.refusedUpgradeCounts,
    rate: stats.publishRateCounts,
    token: stats.tokenFailureCounts,
  }
  const flat = Object.entries(groups).flatMap(([group, values]) =>
    Object.entries(values).map(([name, value]) => [`${group}.${name}`, value as number] as const),
  )
  const hooks = Object.entries(stats.hooks).map(([name, { refused }]) => [`hook.${name}`, refused] as const)
  return Object.fromEntries([...flat, ...hooks])
}

function moved(before: Record<string, number>): Record<string, number> {
  const changes = Object.entries(counts()).map(([name, value]) => [name, value - (before[name] ?? 0)] as const)
  return Object.fromEntries(changes.filter(([, change]) => change !== 0))
}

const session = expect.stringMatching(/^[\w-]{8,}$/) as string
const address = '127.0.0.1'
const webSocket = { door: 'websocket', session, user: 'ann', address }
const stream = { door: 'sse', session, user: 'ann', address }
const forwarded = expect.stringMatching(/^203\.0\.113\.\d+$/) as string
const http = { door: 'http', user: 'ann', address: forwarded }
const nobody = { door: 'http', address: forwarded }
const byOperator = { door: 'operator', address: forwarded }

interface Cell {
  readonly door: string
  readonly outcome: string
  readonly act: () => Promise<string>
  readonly answer: string
  /** Lines of refusals and of what operators did; `connected`, `listened` and the like are not of this table. */
  readonly audit?: readonly Row[]
  readonly metrics?: Record<string, number>
  /** Of messages with this outcome's key. */
  readonly notice?: Row
}

const CELLS: readonly Cell[] = [
  {
    door: 'websocket',
    outcome: 'allowed',
    act: () => overWebSocket('ann', published('open.websocket')),
    answer: 'ok',
    notice: { session, user: 'ann', address, key: 'open.websocket' },
  },
  {
    door: 'websocket',
    outcome: 'refused by grant',
    act: () => overWebSocket('ann', published('closed.1')),
    answer: 'E_FORBIDDEN',
    audit: [{ ...webSocket, action: 'publish', code: 'E_FORBIDDEN', target: 'closed.1' }],
    metrics: { 'refused.E_FORBIDDEN': 1 },
  },
  {
    door: 'websocket',
    outcome: 'refused by rate',
    act: () => overWebSocket('bea', (client) => hurried(() => published('open.hasty')(client)), HASTY),
    answer: 'E_RATE_LIMIT',
    audit: [{ ...webSocket, user: 'bea', action: 'publish', code: 'E_RATE_LIMIT', target: 'open.hasty' }],
    metrics: { 'refused.E_RATE_LIMIT': 1, 'rate.user': 1 },
  },
  {
    door: 'websocket',
    outcome: 'refused by hook',
    act: () => overWebSocket('ann', published('hooked.1')),
    answer: 'E_NO_CREDIT',
    audit: [{ ...webSocket, action: 'publish', code: 'E_NO_CREDIT', target: 'hooked.1' }],
    metrics: { 'refused.E_FORBIDDEN': 1, 'hook.publish': 1 },
  },
  {
    door: 'websocket',
    outcome: 'refused by token',
    act: async () => {
      const client = await ProtocolClient.open(house.webSocketUrl, { headers: stranger })
      await client.until(() => client.closure !== undefined)
      return String(client.received('error')[0]?.code)
    },
    answer: 'E_TOKEN_INVALID',
    audit: [{ door: 'websocket', session, address, action: 'connect', code: 'E_TOKEN_INVALID' }],
    metrics: { 'token.malformed': 1 },
  },
  {
    door: 'websocket',
    outcome: 'refused by limit',
    act: () => overWebSocket('ann', published('open.large', JSON.stringify(LARGE))),
    answer: 'E_PAYLOAD_TOO_LARGE',
    audit: [{ ...webSocket, action: 'publish', code: 'E_PAYLOAD_TOO_LARGE', target: 'open.large' }],
    metrics: { 'refused.E_PAYLOAD_TOO_LARGE': 1 },
  },
  {
    door: 'websocket, listening',
    outcome: 'allowed',
    act: () => overWebSocket('ann', listening('open.#')),
    answer: 'ok',
  },
  {
    door: 'websocket, listening',
    outcome: 'refused by grant',
    act: () => overWebSocket('ann', listening('closed.#')),
    answer: 'E_FORBIDDEN',
    audit: [{ ...webSocket, action: 'listen', code: 'E_FORBIDDEN', target: 'closed.#' }],
    metrics: { 'refused.E_FORBIDDEN': 1 },
  },
  {
    door: 'websocket, listening',
    outcome: 'refused by hook',
    act: () => overWebSocket('ann', listening('hooked.#')),
    answer: 'E_NO_CREDIT',
    audit: [{ ...webSocket, action: 'listen', code: 'E_NO_CREDIT', target: 'hooked.#' }],
    metrics: { 'refused.E_FORBIDDEN': 1, 'hook.listen': 1 },
  },
  {
    door: 'websocket, listening',
    outcome: 'refused by limit',
    act: () => overWebSocket('ann', listening('open.#'), NO_LISTENS),
    answer: 'E_LISTEN_LIMIT',
    audit: [{ ...webSocket, action: 'listen', code: 'E_LISTEN_LIMIT', target: 'open.#' }],
    metrics: { 'refused.E_LISTEN_LIMIT': 1 },
  },
  {
    door: 'sse, listening',
    outcome: 'allowed',
    act: async () => await streamed('open.#', await bearer('ann')),
    answer: 'ok',
  },
  {
    door: 'sse, listening',
    outcome: 'refused by grant',
    act: async () => await streamed('closed.#', await bearer('ann')),
    answer: '403 E_FORBIDDEN',
    audit: [{ event: 'upgrade-refused', address, code: 'E_FORBIDDEN' }],
    metrics: { 'upgrades.E_FORBIDDEN': 1 },
  },
  {
    door: 'sse, listening',
    outcome: 'refused by hook',
    act: async () => await streamed('hooked.#', await bearer('ann')),
    answer: 'E_NO_CREDIT',
    audit: [{ ...stream, action: 'listen', code: 'E_NO_CREDIT' }],
    metrics: { 'refused.E_FORBIDDEN': 1, 'hook.listen': 1 },
  },
  {
    door: 'sse, listening',
    outcome: 'refused by token',
    act: () => streamed('open.#', stranger),
    answer: '401 E_TOKEN_INVALID',
    audit: [{ event: 'upgrade-refused', address, code: 'E_TOKEN_INVALID' }],
    metrics: { 'upgrades.E_TOKEN_INVALID': 1, 'token.malformed': 1 },
  },
  {
    door: 'sse, listening',
    outcome: 'refused by limit',
    act: async () => await streamed('open.#', await bearer('ann', NO_LISTENS)),
    answer: 'E_LISTEN_LIMIT',
    audit: [{ ...stream, action: 'listen', code: 'E_LISTEN_LIMIT' }],
    metrics: { 'refused.E_LISTEN_LIMIT': 1 },
  },
  {
    door: 'http',
    outcome: 'allowed',
    act: async () => await posted(await bearer('ann'), 'open.http'),
    answer: 'ok',
    notice: { user: 'ann', address: forwarded, key: 'open.http' },
  },
  {
    door: 'http',
    outcome: 'refused by grant',
    act: async () => await posted(await bearer('ann'), 'closed.1'),
    answer: '403 E_FORBIDDEN',
    audit: [{ ...http, action: 'publish', code: 'E_FORBIDDEN', target: 'closed.1' }],
    metrics: { 'refused.E_FORBIDDEN': 1 },
  },
  {
    door: 'http',
    outcome: 'refused by rate',
    act: async () => {
      const headers = await bearer('cia', HASTY)
      return await hurried(() => posted(headers, 'open.hasty'))
    },
    answer: '429 E_RATE_LIMIT',
    audit: [{ ...http, user: 'cia', action: 'publish', code: 'E_RATE_LIMIT', target: 'open.hasty' }],
    metrics: { 'refused.E_RATE_LIMIT': 1, 'rate.user': 1 },
  },
  {
    door: 'http',
    outcome: 'refused by hook',
    act: async () => await posted(await bearer('ann'), 'hooked.1'),
    answer: '403 E_NO_CREDIT',
    audit: [{ ...http, action: 'publish', code: 'E_NO_CREDIT', target: 'hooked.1' }],
    metrics: { 'refused.E_FORBIDDEN': 1, 'hook.publish': 1 },
  },
  {
    door: 'http',
    outcome: 'refused by token',
    act: () => posted(stranger, 'open.1'),
    answer: '401 E_TOKEN_INVALID',
    audit: [{ ...nobody, action: 'publish', code: 'E_TOKEN_INVALID' }],
    metrics: { 'refused.E_TOKEN_INVALID': 1, 'token.malformed': 1 },
  },
  {
    door: 'http',
    outcome: 'refused without a token',
    act: () => posted({}, 'open.1'),
    answer: '401 E_UNAUTHENTICATED',
    audit: [{ ...nobody, action: 'publish', code: 'E_UNAUTHENTICATED' }],
    metrics: { 'refused.E_UNAUTHENTICATED': 1 },
  },
  {
    door: 'http',
    outcome: 'refused by limit',
    act: async () => await posted(await bearer('ann'), 'open.large', LARGE),
    answer: '413 E_PAYLOAD_TOO_LARGE',
    audit: [{ ...http, action: 'publish', code: 'E_PAYLOAD_TOO_LARGE', target: 'open.large' }],
    metrics: { 'refused.E_PAYLOAD_TOO_LARGE': 1 },
  },
  {
    door: 'http, a batch',
    outcome: 'refused by grant',
    act: async () => {
      const messages = ['open.1', 'closed.2'].map((key) => ({ key, payload: 1 }))
      return await overHttp('/api/publish/batch', await bearer('ann'), { messages })
    },
    answer: '403 E_FORBIDDEN',
    audit: [{ ...http, action: 'publish', code: 'E_FORBIDDEN' }],
    metrics: { 'refused.E_FORBIDDEN': 1 },
  },
  ...(['history', 'presence'] as const).flatMap((action): Cell[] => [
    {
      door: `http, ${action}`,
      outcome: 'allowed',
      act: async () => await overHttp(`/api/${action}?key=open.1`, await bearer('ann')),
      answer: 'ok',
    },
    {
      door: `http, ${action}`,
      outcome: 'refused by grant',
      act: async () => await overHttp(`/api/${action}?key=closed.1`, await bearer('ann')),
      answer: '403 E_FORBIDDEN',
      audit: [{ ...http, action, code: 'E_FORBIDDEN', target: 'closed.1' }],
      metrics: { 'refused.E_FORBIDDEN': 1 },
    },
    {
      door: `http, ${action}`,
      outcome: 'refused by hook',
      act: async () => await overHttp(`/api/${action}?key=hooked.1`, await bearer('ann')),
      answer: '403 E_NO_CREDIT',
      audit: [{ ...http, action, code: 'E_NO_CREDIT', target: 'hooked.1' }],
      metrics: { 'refused.E_FORBIDDEN': 1, [action === 'history' ? 'hook.listen' : 'hook.presence']: 1 },
    },
    {
      door: `http, ${action}`,
      outcome: 'refused by token',
      act: () => overHttp(`/api/${action}?key=open.1`, stranger),
      answer: '401 E_TOKEN_INVALID',
      audit: [{ ...nobody, action, code: 'E_TOKEN_INVALID', target: 'open.1' }],
      metrics: { 'refused.E_TOKEN_INVALID': 1, 'token.malformed': 1 },
    },
  ]),
  {
    door: 'process',
    outcome: 'allowed',
    act: () => rejected(() => house.server.publish('open.process', 1)),
    answer: 'ok',
    notice: { key: 'open.process' },
  },
  {
    door: 'process',
    outcome: 'refused by limit',
    act: () => rejected(() => house.server.publish('open.large', LARGE)),
    answer: 'E_PAYLOAD_TOO_LARGE',
  },
  {
    door: 'operator',
    outcome: 'allowed',
    act: () => posted(operator, 'open.operator'),
    answer: 'ok',
    notice: { address: forwarded, key: 'open.operator' },
  },
  {
    door: 'operator',
    outcome: 'refused by limit',
    act: () => posted(operator, 'open.large', LARGE),
    answer: '413 E_PAYLOAD_TOO_LARGE',
    audit: [{ ...byOperator, action: 'publish', code: 'E_PAYLOAD_TOO_LARGE', target: 'open.large' }],
    metrics: { 'refused.E_PAYLOAD_TOO_LARGE': 1 },
  },
  {
    door: 'operator, revoking',
    outcome: 'allowed',
    act: () => overHttp('/api/revoke', operator, { user: 'mallory', until: 4_102_444_800 }),
    answer: 'ok',
    audit: [{ event: 'operated', ...byOperator, action: 'revoke', target: 'user mallory' }],
  },
  {
    door: 'operator, disconnecting',
    outcome: 'allowed',
    act: () => overHttp('/api/disconnect', operator, { address: '203.0.113.7' }),
    answer: 'ok',
    audit: [{ event: 'operated', ...byOperator, action: 'disconnect', target: 'address 203.0.113.7' }],
  },
  {
    door: 'operator, revoking',
    outcome: 'refused by grant',
    act: async () => await overHttp('/api/revoke', await bearer('ann'), { user: 'mallory', until: 4_102_444_800 }),
    answer: '403 E_FORBIDDEN',
    audit: [{ ...http, action: 'revoke', code: 'E_FORBIDDEN' }],
    metrics: { 'refused.E_FORBIDDEN': 1 },
  },
  {
    door: 'operator, disconnecting',
    outcome: 'refused by token',
    act: () => overHttp('/api/disconnect', stranger, { user: 'mallory' }),
    answer: '401 E_TOKEN_INVALID',
    audit: [{ ...nobody, action: 'disconnect', code: 'E_TOKEN_INVALID' }],
    metrics: { 'refused.E_TOKEN_INVALID': 1, 'token.malformed': 1 },
  },
]

describe('every door', () => {
  let linesBefore = 0
  const ofTable = ({ event }: Row) => event === 'refused' || event === 'upgrade-refused' || event === 'operated'
  const lines = () => auditLines().filter(ofTable).slice(linesBefore)

  beforeEach(() => {
    linesBefore = auditLines().filter(ofTable).length
  })

  it.each(CELLS)('$door: $outcome', async ({ act, answer, audit = [], metrics = {}, notice }) => {
    const before = counts()
    expect(await act()).toBe(answer)
    const time = expect.any(String) as string
    await eventually(() => expect(lines()).toEqual(audit.map((line) => ({ time, event: 'refused', ...line }))))
    await eventually(() => expect(moved(before)).toEqual(metrics))
    if (notice === undefined) return
    const told = () => backend.notices.filter(({ key }) => key === notice.key)
    const common = { event: 'published', at: expect.any(Number), position: expect.any(String), payload: 1 }
    await eventually(() => expect(told()).toEqual([{ ...common, ...notice }]))
  })

  it('answers the refusal of a hook that takes its time before what was published behind it', async () => {
    const client = await ProtocolClient.open(house.webSocketUrl, { headers: await bearer('ann') })
    const from = client.messages.length
    for (const key of ['hooked.slow', 'open.behind'])
      client.send({ verb: 'publish', id: key.replace('.', '-'), key, payload: '1', echo: true })
    await client.answerTo('open-behind')
    const answers = client.messages.slice(from).map((message) => [message.verb, 'id' in message && message.id])
    expect(answers).toEqual([
      ['error', 'hooked-slow'],
      ['ok', 'open-behind'],
    ])
    client.socket.terminate()
  })

  it('tells nobody of a message that was refused', () => {
    const keys = backend.notices.map(({ key }) => key)
    expect(keys.filter((key) => !String(key).startsWith('open.'))).toEqual([])
    expect(keys).not.toContain('open.large')
  })
})
