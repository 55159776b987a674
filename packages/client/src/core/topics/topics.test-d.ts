import { expectTypeOf } from 'vitest'
import type {
  AsPublished,
  KnownKey,
  KnownTopic,
  Payload,
  PayloadInput,
  PresenceInput,
  Reply,
  StreamOf,
  StreamOutput,
  Topic,
  WebMQClient,
} from '../../index.js'
import { history } from '../../parts/history/index.js'
import { iterate } from '../../parts/iterate/index.js'
import { loaded } from '../../parts/load/index.js'
import { presence } from '../../parts/presence/index.js'

interface App {
  'chat.*.message': { text: string }
  'chat.*.typing': { userId: string }
  'orders.#': { id: number }
  status: 'up' | 'down'
}

// Keys
expectTypeOf<Payload<App, 'chat.42.message'>>().toEqualTypeOf<{ text: string }>()
expectTypeOf<Payload<App, 'orders'>>().toEqualTypeOf<{ id: number }>()
expectTypeOf<Payload<App, 'orders.eu.7'>>().toEqualTypeOf<{ id: number }>()
expectTypeOf<Payload<App, 'status'>>().toEqualTypeOf<'up' | 'down'>()
expectTypeOf<Payload<App, `chat.${string}.message`>>().toEqualTypeOf<{ text: string }>()
expectTypeOf<Payload<App, `orders.${number}`>>().toEqualTypeOf<{ id: number }>()

// Patterns: the union of what has a key in common
expectTypeOf<Payload<App, 'chat.*.message'>>().toEqualTypeOf<{ text: string }>()
expectTypeOf<Payload<App, 'chat.42.*'>>().toEqualTypeOf<{ text: string } | { userId: string }>()
expectTypeOf<Payload<App, 'chat.#'>>().toEqualTypeOf<{ text: string } | { userId: string }>()
expectTypeOf<Payload<App, '#.message'>>().toEqualTypeOf<{ text: string } | { id: number }>()
expectTypeOf<Payload<App, '*'>>().toEqualTypeOf<{ id: number } | 'up' | 'down'>()
expectTypeOf<Payload<App, '#'>>().toEqualTypeOf<App[keyof App]>()
expectTypeOf<Payload<App, 'chat.#.#.message'>>().toEqualTypeOf<{ text: string }>()

// What is not known at compile time may be anything
expectTypeOf<Payload<App, string>>().toEqualTypeOf<App[keyof App]>()
expectTypeOf<Payload<object, 'a.b'>>().toEqualTypeOf<unknown>()

// What cannot be meant
expectTypeOf<Payload<App, 'chat'>>().toEqualTypeOf<never>()
expectTypeOf<Payload<App, 'chat.1.message.2'>>().toEqualTypeOf<never>()
expectTypeOf<KnownTopic<App, 'nope'>>().toEqualTypeOf<"'nope' is not a known topic">()
expectTypeOf<KnownTopic<App, 'orders.1'>>().toEqualTypeOf<'orders.1'>()
expectTypeOf<KnownTopic<object, 'nope'>>().toEqualTypeOf<'nope'>()
expectTypeOf<KnownKey<App, 'nope'>>().toEqualTypeOf<"'nope' is not a known topic">()
expectTypeOf<KnownKey<App, 'orders.#'>>().toEqualTypeOf<"'orders.#' is a pattern, not a key">()
expectTypeOf<KnownKey<object, 'a.*'>>().toEqualTypeOf<"'a.*' is a pattern, not a key">()
expectTypeOf<KnownKey<App, `chat.${string}.message`>>().toEqualTypeOf<`chat.${string}.message`>()

export async function typed(client: WebMQClient<App>, untyped: WebMQClient, room: string, key: string): Promise<void> {
  client.listen('chat.*.message', (payload, message) => {
    expectTypeOf(payload).toEqualTypeOf<{ text: string }>()
    expectTypeOf(message.payload).toEqualTypeOf<{ text: string }>()
  })
  client.listen(`chat.${room}.typing`, ({ userId }) => expectTypeOf(userId).toEqualTypeOf<string>())
  client.listen('#', (payload) => expectTypeOf(payload).toEqualTypeOf<App[keyof App]>(), { last: 1 })
  for await (const { payload } of iterate('orders.#', { client })) expectTypeOf(payload).toEqualTypeOf<{ id: number }>()
  for await (const { payload } of iterate('status', { client, last: 1 })) {
    expectTypeOf(payload).toEqualTypeOf<'up' | 'down'>()
  }
  // A handler may return anything, and may be asynchronous.
  client.listen('status', () => 1)
  client.listen('status', async () => undefined)
  // @ts-expect-error no topic can be meant
  client.listen('nope', () => undefined)

  await client.publish('chat.42.message', { text: 'hi' })
  await client.publish(`chat.${room}.message`, { text: 'hi' }, { ack: 'none' })
  await client.publish(key, { id: 1 })
  // @ts-expect-error a pattern
  await client.publish('chat.*.message', { text: 'hi' })
  // @ts-expect-error a pattern
  await untyped.publish('any.#', 1)
  // @ts-expect-error a pattern
  await history('orders.#', { client })
  // @ts-expect-error payload of another topic
  await client.publish('chat.42.message', { id: 1 })
  // @ts-expect-error no topic can be meant
  await client.publish('chat.42', { text: 'hi' })
  // @ts-expect-error a state of no topic
  await client.publish('status', 'sideways')

  const { messages } = await history('orders.eu.7', { client, limit: 1 })
  for (const { payload } of messages) expectTypeOf(payload).toEqualTypeOf<{ id: number }>()
  // @ts-expect-error no topic can be meant
  await history('nope', { client })
  // What `load` gives back may be a position, or nothing.
  client.listen(
    'status',
    loaded(
      () => 1,
      async () => undefined,
    ),
  )
  client.listen(
    'status',
    loaded(
      () => 1,
      async ({ signal }) => void (await fetch('/status', { signal })),
    ),
  )
  client.listen(
    'status',
    loaded(
      () => 1,
      ({ gap }) => gap?.since,
    ),
  )
  // A receiver gets the payload of its pattern.
  client.listen(
    'orders.#',
    loaded(
      (payload) => expectTypeOf(payload).toEqualTypeOf<{ id: number }>(),
      () => undefined,
    ),
  )

  untyped.listen('any.thing', (payload) => expectTypeOf(payload).toEqualTypeOf<unknown>())
  await untyped.publish('any.thing', { at: 'all' })
}

// Over JSON
interface Dated {
  at: Date
  list: readonly { at: Date | null; n?: number }[]
}
interface Entries {
  dated: Dated
  plain: App['chat.*.message']
  'tree.*': Tree
  bytes: Uint8Array
  'rooms.*': Topic<{ message: Dated; presence: { since: Date }; reply: { at: Date } }>
  'calls.*': Topic<{ reply: boolean }>
  'logs.*': Topic<{ stream: { meta: { at: Date }; reply: 1 } }>
}
type List = string | Date | List[]
interface Tree {
  children: Tree[]
  value: unknown
}
type Undated = { at: string; list: readonly { at: string | null; n?: number }[] }

expectTypeOf<Payload<Entries, 'dated'>>().toEqualTypeOf<Undated>()
expectTypeOf<PayloadInput<Entries, 'dated'>>().toEqualTypeOf<Dated>()
expectTypeOf<Payload<Entries & AsPublished, 'dated'>>().toEqualTypeOf<Dated>()
expectTypeOf<Payload<Entries, 'tree.1'>>().toEqualTypeOf<Tree>()
expectTypeOf<Payload<{ a: [number, Date] }, 'a'>>().toEqualTypeOf<[number, string]>()
expectTypeOf<List>().not.toExtend<Payload<{ a: List }, 'a'>>()
expectTypeOf<Payload<Entries, 'bytes'>>().toEqualTypeOf<Uint8Array>()
expectTypeOf<Payload<{ a: Dated | { text: string } }, 'a'>>().toEqualTypeOf<Undated | { text: string }>()
// biome-ignore lint/suspicious/noExplicitAny: it stays what it is
expectTypeOf<Payload<{ a: any }, 'a'>>().toBeAny()

// More than messages
expectTypeOf<Payload<Entries, 'rooms.1'>>().toEqualTypeOf<Undated>()
expectTypeOf<Payload<Entries, 'calls.1'>>().toEqualTypeOf<never>()
expectTypeOf<PresenceInput<Entries, 'rooms.1'>>().toEqualTypeOf<{ since: Date }>()
expectTypeOf<PresenceInput<Entries, 'plain'>>().toEqualTypeOf<unknown>()
expectTypeOf<PresenceInput<Entries, 'of.no.topic'>>().toEqualTypeOf<unknown>()
expectTypeOf<Reply<Entries, 'rooms.1'>>().toEqualTypeOf<{ at: string }>()
expectTypeOf<Reply<Entries & AsPublished, 'rooms.1'>>().toEqualTypeOf<{ at: Date }>()
expectTypeOf<Reply<Entries, '#'>>().toEqualTypeOf<{ at: string } | boolean>()
expectTypeOf<Reply<object, 'rooms.1'>>().toEqualTypeOf<unknown>()
expectTypeOf<StreamOutput<StreamOf<Entries, 'logs.1'>, 'meta'>>().toEqualTypeOf<{ at: string }>()
expectTypeOf<StreamOutput<StreamOf<Entries, 'logs.1'>, 'result'>>().toEqualTypeOf<unknown>()

export async function entries(client: WebMQClient<Entries>): Promise<void> {
  const [member] = await presence('rooms.1', { client }).get()
  expectTypeOf(member?.data).toEqualTypeOf<{ since: string } | undefined>()
  await presence('rooms.1', { client }).enter({ since: new Date() })
  await client.publish('dated', { at: new Date(), list: [] })
  // @ts-expect-error a handler gets a text, and a publish takes a date
  await client.publish('dated', { at: '2026-11-29', list: [] })
  client.listen('dated', ({ at }) => expectTypeOf(at).toEqualTypeOf<string>())
}
