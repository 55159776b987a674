import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { compile } from './compile.js'

/** Kinds of clients: how an app declares one, and what its payloads are. */
const KINDS = {
  'setup<Topics>()': { client: 'setup<App>({ url })', payload: 'Order' },
  'a schema': {
    client: "checked({ url, topics: { 'orders.{id}': typed<Order>(), 'rooms.{id}': typed<Room>() } })",
    payload: 'Order',
  },
  'a merged declaration': { client: 'setup({ url })', payload: 'Order', isMerged: true },
  'no topics': { client: 'setup({ url })', payload: 'unknown' },
  AnyClient: { client: 'setup({ url }) as AnyClient', payload: 'unknown' },
} satisfies Record<string, { client: string; payload: string; isMerged?: boolean }>

/**
 * Uses of the parts. `is` takes the payload of the client's topics alone, `isGuest` and others the types of the topic
 * `rooms.*`. `KEY` and `PATTERN` are of a topic or of none; `BODY` and the other values are of its types or of others.
 */
const PARTS = {
  listen: 'client.listen(PATTERN, (payload) => is(payload))',
  publish: 'void client.publish(KEY, BODY)',
  concurrently: 'client.listen(PATTERN, concurrently(async (payload) => is(payload), { concurrency: 2 }))',
  latest: 'client.listen(PATTERN, latest((payload) => is(payload)))',
  'latest, a batch':
    'client.listen(PATTERN, latest((messages) => messages.map(({ payload }) => is(payload)), { batch: true }))',
  loaded: 'client.listen(PATTERN, loaded((payload) => is(payload), () => undefined))',
  history: 'for (const { payload } of (await history(KEY, { client, limit: 1 })).messages) is(payload)',
  iterate: 'for await (const { payload } of iterate(PATTERN, { client, last: 1 })) is(payload)',
  state: 'state(PATTERN, { client }).subscribe(({ set }) => { for (const [, payload] of set) is(payload) })',
  remove: 'void remove(KEY, { client })',
  request: 'expectNumber(await request(KEY, BODY, { client, timeoutMs: 1 }))',
  respond: 'respond(PATTERN, (payload) => is(payload), { client })',
  work: "work(PATTERN, (payload) => is(payload), { client, group: 'workers' })",
  'request, a reply': 'isReply(await request(ROOM, { id: 1 }, { client }))',
  'request, its place': 'const reply: REPLY = await request(ROOM, { id: 1 }, { client }); void reply',
  'respond, a reply': "respond('rooms.*', () => REPLIED, { client })",
  'respond, later': "respond('rooms.*', async () => REPLIED, { client })",
  outbox: 'void outbox({ client }).publish(KEY, BODY)',
  presence: 'for (const { data } of await presence(ROOM, { client }).get()) isGuest(data)',
  'presence, a handler': "presence(ROOM, { client }).on('enter', ({ data }) => isGuest(data))",
  'presence, enter': 'void presence(ROOM, { client }).enter(GUEST)',
  openStream: 'void openStream(ROOM, { client, meta: META })',
  'openStream, end': 'void (await openStream(ROOM, { client })).end(RESULT)',
  'openStream, onMessage':
    '(await openStream(ROOM, { client })).onMessage((steer) => { isSteer(steer); return STEERED })',
  readStream: 'const reader = readStream(ROOM, { client }); isMeta(reader.meta); isResult(reader.result)',
  'readStream, send': 'isSteered(await readStream(ROOM, { client }).send(STEER))',
  stopStream: 'void stopStream(ROOM, { client })',
  streamTransport: 'streamTransport({ client }) satisfies ChatTransport<UIMessage>',
  writeChunks: 'void writeChunks(await openStream(ROOM, { client }), chunks)',
  ...hooks('react', '.'),
  ...hooks('vue', '.value.'),
}

/** Svelte's stores are subscribed to. */
const SVELTE = {
  'svelte useTopic': 'svelte.createHooks(client).useTopic(PATTERN, (payload) => is(payload))',
  'svelte useTopic, { client }': 'svelte.useTopic(PATTERN, (payload) => is(payload), { client })',
  'svelte useMessages':
    'svelte.createHooks(client).useMessages(PATTERN).subscribe(({ messages }) => messages.map(({ payload }) => is(payload)))',
  'svelte useLatest':
    'svelte.createHooks(client).useLatest(PATTERN).subscribe(({ latest }) => latest.forEach(({ payload }) => is(payload)))',
  'svelte useStateTopic':
    'svelte.createHooks(client).useStateTopic(PATTERN).subscribe(({ entries }) => entries.forEach((payload) => is(payload)))',
  'svelte usePublish': 'void svelte.createHooks(client).usePublish(KEY)(BODY)',
  'svelte useStatus': 'svelte.useStatus.of(client)().subscribe(({ lost }) => lost)',
  'svelte usePresence':
    'svelte.usePresence.of(client)(ROOM).subscribe(({ members }) => members.forEach(({ data }) => isGuest(data)))',
  'svelte usePresence, me': 'svelte.usePresence.of(client)(ROOM, GUEST)',
  'svelte useStream': 'svelte.useStream.of(client)(ROOM).subscribe(({ meta }) => isMeta(meta))',
}

/** Parts that take every client. */
const UNTYPED = {
  'presence of a type': "void presence<{ name: string }>('room', { client }).enter({ name: 'Ada' })",
  'presence, its place': "const room: Presence<{ name: string }> = presence('room', { client }); void room",
  devtools: 'devtools({ client })()',
  yjs: "new YjsProvider(doc, 'board', { client })",
  schema: "withTopics(client, { 'orders.*': typed<Order>() })",
  'react provider': 'react.WebMQProvider({ client }) satisfies object',
  'vue provider': 'app.provide(vue.clientKey, client)',
  'svelte provider': 'svelte.provideClient(client)',
  'react usePresence, its type': "react.usePresence<{ name: string }>('room').members[0]?.data?.name",
  'react usePresence, its data':
    "is2<{ name: string } | undefined>(react.usePresence('room', { name: 'Ada' }, { client }).members[0]?.data)",
}

function hooks(framework: string, read: string): Record<string, string> {
  const bound = `${framework}.createHooks(client)`
  const of = (hook: string) => `${framework}.${hook}.of(client)`
  return {
    [`${framework} useTopic`]: `${bound}.useTopic(PATTERN, (payload) => is(payload))`,
    [`${framework} useTopic, { client }`]: `${framework}.useTopic(PATTERN, (payload) => is(payload), { client })`,
    [`${framework} useTopic, latest`]: `${bound}.useTopic(PATTERN, (payload) => is(payload), { receiver: (handler) => latest(handler) })`,
    [`${framework} useMessages`]: `${bound}.useMessages(PATTERN).messages${read}map(({ payload }) => is(payload))`,
    [`${framework} useMessages, { client }`]: `${framework}.useMessages(PATTERN, { client, limit: 5 }).messages${read}map(({ payload }) => is(payload))`,
    [`${framework} useLatest`]: `${bound}.useLatest(PATTERN).latest${read}forEach(({ payload }) => is(payload))`,
    [`${framework} useStateTopic`]: `${bound}.useStateTopic(PATTERN).entries${read}forEach((payload) => is(payload))`,
    [`${framework} usePublish`]: `void ${bound}.usePublish(KEY)(BODY)`,
    [`${framework} usePublish, any key`]: `void ${bound}.usePublish()(KEY, BODY)`,
    [`${framework} useClient`]: `${bound}.useClient().listen(PATTERN, (payload) => is(payload))`,
    [`${framework} useTopic.of`]: `${of('useTopic')}(PATTERN, (payload) => is(payload))`,
    [`${framework} useMessages.of`]: `${of('useMessages')}(PATTERN).messages${read}map(({ payload }) => is(payload))`,
    [`${framework} usePublish.of`]: `void ${of('usePublish')}(KEY, { optimistic: true })(BODY)`,
    [`${framework} useStatus.of`]: `void ${of('useStatus')}().lost`,
    [`${framework} useStream`]: `isMeta(${bound}.useStream(ROOM).meta${read.slice(0, -1)})`,
    [`${framework} useStream, send`]: `void ${framework}.useStream(ROOM, { client }).send(STEER)`,
    [`${framework} usePresence`]: `${bound}.usePresence(ROOM).members${read}forEach(({ data }) => isGuest(data))`,
    [`${framework} usePresence, me`]: `${framework}.usePresence(ROOM, GUEST, { client })`,
    [`${framework} usePresence, the data of others`]: `${bound}.usePresence(ROOM, { name: 'Ada' }).members${read}forEach(({ data }) => data?.name)`,
  }
}

const HEAD = `import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai'
import { type AnyClient, setup, type Topic, type WebMQClient } from 'webmq-client'
import { streamTransport, writeChunks } from 'webmq-client/ai'
import { concurrently, history, iterate, latest, loaded, type Presence, presence, remove, request, respond, state, work } from 'webmq-client/parts'
import { devtools } from 'webmq-client/devtools'
import { outbox } from 'webmq-client/outbox'
import * as react from 'webmq-client/react'
import { setup as checked, typed, withTopics } from 'webmq-client/schema'
import { openStream, readStream, stopStream } from 'webmq-client/stream'
import * as svelte from 'webmq-client/svelte'
import * as vue from 'webmq-client/vue'
import { YjsProvider } from 'webmq-client/yjs'
import type { App as VueApp } from 'vue'
import type { Doc } from 'yjs'
interface Order { id: number }
interface Guest { name: string }
type Room = Topic<{
  message: Order
  presence: Guest
  reply: number
  stream: { meta: { model: string }; result: { words: number }; message: { shorter: boolean }; reply: 'yes' | 'no' }
}>
interface App { 'orders.*': Order; 'rooms.*': Room }
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
declare function is2<P>(payload: P): void
declare function expectNumber(value: number): void
declare const url: string, app: VueApp, doc: Doc, chunks: AsyncIterable<UIMessageChunk>
`
const MERGED = `declare module 'webmq-client' { interface Topics extends App {} }\n`

interface Use {
  readonly kind: string
  readonly part: string
  /** `known`: a topic, which compiles; `unknown`: none, and `body`: another payload, which compile without topics alone. */
  readonly how: 'known' | 'unknown' | 'body'
  readonly source: string
  readonly errors: string[]
}

/** Of a use, what is right, and what is not by the topics. */
const VALUES: Readonly<Record<string, readonly [right: string, wrong: string]>> = {
  BODY: ['{ id: 1 }', "{ id: 'one' }"],
  GUEST: ["{ name: 'Ada' }", "{ nick: 'Ada' }"],
  META: ["{ model: 'small' }", '{ model: 1 }'],
  REPLIED: ['1', "'one'"],
  REPLY: ['number', 'string'],
  RESULT: ['{ words: 1 }', '{ word: 1 }'],
  STEERED: ["'yes' as const", "'maybe' as const"],
  STEER: ['{ shorter: true }', '{ longer: true }'],
}
const VALUE = new RegExp(`\\b(${Object.keys(VALUES).join('|')})\\b`, 'g')

/** Functions that take the type that a topic of the client says, and `unknown` without one. */
const MEMBERS = {
  isGuest: 'Guest | undefined',
  isReply: 'number',
  isMeta: '{ model: string } | undefined',
  isResult: '{ words: number } | undefined',
  isSteer: '{ shorter: boolean }',
  isSteered: "'yes' | 'no'",
}

/** One line each. */
function usesOf(isMerged: boolean): Use[] {
  return Object.entries(KINDS).flatMap(([kind, { client, payload, ...rest }]) => {
    if ('isMerged' in rest !== isMerged) return []
    return Object.entries({ ...PARTS, ...SVELTE, ...UNTYPED }).flatMap(([part, code]) =>
      (['known', 'unknown', 'body'] as const).flatMap((how) => {
        const isAsked =
          how === 'known' ||
          (how === 'body' ? code.search(VALUE) >= 0 : code.includes('KEY') || code.includes('PATTERN'))
        if (!isAsked) return []
        const [key, pattern] = how === 'unknown' ? ["'other'", "'other.#'"] : ["'orders.1'", "'orders.*'"]
        const text = code
          .replaceAll('KEY', key)
          .replaceAll('PATTERN', pattern)
          .replaceAll('ROOM', "'rooms.1'")
          .replaceAll(VALUE, (name) => VALUES[name]?.[how === 'body' ? 1 : 0] ?? name)
        const members = Object.entries({ is: payload, ...MEMBERS }).map(([name, member]) => {
          const type = payload === 'unknown' ? 'unknown' : member
          return `const ${name} = <V>(value: V, ...same: Same<V, ${type}> extends true ? [] : [\`${type}\`]) => void value`
        })
        const source = `export async function use() { const client = ${client}; ${members.join('; ')}; ${text} }`
        return [{ kind, part, how, source, errors: [] }]
      }),
    )
  })
}

/** All uses, compiled as two apps: a merged declaration holds for the whole of one. */
const uses = [false, true].flatMap((isMerged) => {
  const uses = usesOf(isMerged)
  const head = HEAD + (isMerged ? MERGED : '')
  const { errors } = compile(
    head + uses.map(({ source }, index) => source.replace('use()', `use${index}()`)).join('\n'),
  )
  const first = head.split('\n').length
  for (const { line, text } of errors) {
    const use = uses[line - first]
    if (!use) throw new Error(`line ${line}: ${text}`)
    use.errors.push(text)
  }
  return uses
})
const compiled = uses.filter(
  ({ kind, how }) => how === 'known' || KINDS[kind as keyof typeof KINDS].payload === 'unknown',
)
const refused = uses.filter((use) => !compiled.includes(use))

describe('payloads are those of the client', () => {
  it.each(compiled)('$kind, $part, $how', ({ errors, source }) => {
    expect(errors, source).toEqual([])
  })
})

describe('keys and payloads of no topic do not compile', () => {
  it.each(refused)('$kind, $part, $how', ({ errors, source }) => {
    expect(errors, source).not.toEqual([])
  })
})

/** Entries that are no part of a page's client, and exports that take none. */
const OTHER_ENTRIES = ['./package.json', './protocol', './testing', './vite']
const WITHOUT_CLIENT = [
  ...['WebMQClient', 'WebMQError', 'close', 'unlisten', 'savedPositions'],
  // They are options of a client, or its address.
  ...['msgpack', 'eventStreams', 'appLifecycle', 'sharedTabs', 'serveTabs'],
]

it('compiles every export of every entry: a new part has to be here', async () => {
  const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const entries = Object.keys(exports).filter((entry) => !OTHER_ENTRIES.includes(entry))
  expect(entries.length).toBeGreaterThan(10)
  const text = `${Object.values({ ...PARTS, ...SVELTE, ...UNTYPED }).join('\n')}\nsetup checked typed`
  for (const entry of entries) {
    const module: object = await import(`webmq-client${entry.slice(1)}`)
    const names = Object.keys(module).filter((name) => !WITHOUT_CLIENT.includes(name))
    const prefix = /react|vue|svelte/.test(entry) ? `${entry.slice(2)}\\.` : '\\b'
    const missing = names.filter((name) => !new RegExp(`${prefix}(createHooks\\(client\\)\\.)?${name}\\b`).test(text))
    expect(missing, entry).toEqual([])
  }
})

it.each(['react', 'vue', 'svelte'])('blames the misspelt option, not the key: usePublish of %s', (framework) => {
  const { errors } = compile(`${HEAD}
const client = setup<App>({ url })
${framework}.usePublish.of(client)('orders.1', { optimistc: true })
`)
  expect(errors.map(({ text }) => text)).toEqual([
    expect.stringMatching(/'optimistc' does not exist in type .*'optimistic'/s),
  ])
})
