import { describe, expect, it } from 'vitest'
import { compile } from './compile.js'

/** Kinds of clients: how an app declares one, and what its payloads are. */
const KINDS = {
  'setup<Topics>()': { client: "setup<{ 'orders.*': Order }>({ url })", payload: 'Order' },
  'a schema': { client: "checked({ url, topics: { 'orders.{id}': typed<Order>() } })", payload: 'Order' },
  'a merged declaration': { client: 'setup({ url })', payload: 'Order', isMerged: true },
  'no topics': { client: 'setup({ url })', payload: 'unknown' },
  AnyClient: { client: 'setup({ url }) as AnyClient', payload: 'unknown' },
} satisfies Record<string, { client: string; payload: string; isMerged?: boolean }>

/** Uses of the parts. `is` takes the payload of the client's topics alone, `KEY` and `PATTERN` are of a topic or of none. */
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
  outbox: 'void outbox({ client }).publish(KEY, BODY)',
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
}

/** Parts that take every client. */
const UNTYPED = {
  presence: "void presence<{ name: string }>('room', { client }).enter({ name: 'Ada' })",
  devtools: 'devtools({ client })()',
  yjs: "new YjsProvider(doc, 'board', { client })",
  'react provider': '({ client }) satisfies react.WebMQProviderProps',
  'vue provider': 'app.provide(vue.clientKey, client)',
  'svelte provider': 'svelte.provideClient(client)',
  'react usePresence':
    "is2<{ name: string } | undefined>(react.usePresence('room', { name: 'Ada' }, { client }).members[0]?.data)",
}

function hooks(framework: string, read: string): Record<string, string> {
  const bound = `${framework}.createHooks(client)`
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
  }
}

const HEAD = `import { type AnyClient, setup, type WebMQClient } from 'webmq-client'
import { concurrently, history, iterate, latest, loaded, presence, remove, request, respond, state, work } from 'webmq-client/parts'
import { devtools } from 'webmq-client/devtools'
import { outbox } from 'webmq-client/outbox'
import * as react from 'webmq-client/react'
import { setup as checked, typed } from 'webmq-client/schema'
import * as svelte from 'webmq-client/svelte'
import * as vue from 'webmq-client/vue'
import { YjsProvider } from 'webmq-client/yjs'
import type { App } from 'vue'
import type { Doc } from 'yjs'
interface Order { id: number }
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
declare function is2<P>(payload: P): void
declare function expectNumber(value: number): void
declare const url: string, app: App, doc: Doc
`
const MERGED = `declare module 'webmq-client' { interface Topics { 'orders.*': Order } }\n`

interface Use {
  readonly kind: string
  readonly part: string
  /** `known`: a topic, which compiles; `unknown`: none, and `body`: another payload, which compile without topics alone. */
  readonly how: 'known' | 'unknown' | 'body'
  readonly source: string
  readonly errors: string[]
}

/** One line each. */
function usesOf(isMerged: boolean): Use[] {
  return Object.entries(KINDS).flatMap(([kind, { client, payload, ...rest }]) => {
    if ('isMerged' in rest !== isMerged) return []
    return Object.entries({ ...PARTS, ...SVELTE, ...UNTYPED }).flatMap(([part, code]) =>
      (['known', 'unknown', 'body'] as const).flatMap((how) => {
        const isAsked =
          how === 'known' ||
          code.includes(how === 'body' ? 'BODY' : 'KEY') ||
          (how === 'unknown' && code.includes('PATTERN'))
        if (!isAsked) return []
        const [key, pattern] = how === 'unknown' ? ["'other'", "'other.#'"] : ["'orders.1'", "'orders.*'"]
        const body = how === 'body' ? "{ id: 'one' }" : '{ id: 1 }'
        const text = code.replaceAll('KEY', key).replaceAll('PATTERN', pattern).replaceAll('BODY', body)
        const is = `const is = <V>(value: V, ...same: Same<V, ${payload}> extends true ? [] : ['${payload}']) => void value`
        const source = `export async function use() { const client = ${client}; ${is}; ${text}; void is }`
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
