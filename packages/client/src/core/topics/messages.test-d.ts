import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import type {
  AnyClient,
  KnownTopic,
  ListenTopic,
  Message,
  MessageHandler,
  NamedTopics,
  Payload,
  PayloadInput,
  TopicMessage,
  WebMQClient,
} from '../../index.js'
import type { KeyOf, ParamsOf } from './words.js'

// The keys of a pattern
expectTypeOf<KeyOf<'status'>>().toEqualTypeOf<'status'>()
expectTypeOf<KeyOf<'chat.*.message'>>().toEqualTypeOf<`chat.${string}.message`>()
expectTypeOf<KeyOf<'*.message'>>().toEqualTypeOf<`${string}.message`>()
expectTypeOf<KeyOf<'chat.{room}.{user}'>>().toEqualTypeOf<`chat.${string}.${string}`>()
expectTypeOf<KeyOf<'orders.#'>>().toEqualTypeOf<'orders' | `orders.${string}`>()
expectTypeOf<KeyOf<'#.error'>>().toEqualTypeOf<'error' | `${string}.error`>()
expectTypeOf<KeyOf<'a.{#rest}.z'>>().toEqualTypeOf<'a.z' | `a.${string}.z`>()
expectTypeOf<KeyOf<'#'>>().toEqualTypeOf<string>()
expectTypeOf<KeyOf<string>>().toEqualTypeOf<string>()

// Named words
expectTypeOf<ParamsOf<'chat.{room}.message'>>().toEqualTypeOf<{ readonly room: string }>()
expectTypeOf<ParamsOf<'files.{user}.{#path}'>>().toEqualTypeOf<{ readonly user: string; readonly path: string }>()
// biome-ignore lint/complexity/noBannedTypes: the object that has no names
expectTypeOf<ParamsOf<'chat.*'>>().toEqualTypeOf<{}>()

interface App {
  'chat.*.message': { text: string }
  'chat.*.typing': { userId: string }
  'orders.#': { id: number }
  status: 'up' | 'down'
}

// The key tells the payloads apart.
type Chat = TopicMessage<App, 'chat.#'>
expectTypeOf<Chat>().toEqualTypeOf<
  Message<{ text: string }, `chat.${string}.message`> | Message<{ userId: string }, `chat.${string}.typing`>
>()
expectTypeOf<TopicMessage<App, 'chat.42.message'>>().toEqualTypeOf<Message<{ text: string }, 'chat.42.message'>>()
expectTypeOf<TopicMessage<object, 'a.*'>>().toEqualTypeOf<Message<unknown, `a.${string}`>>()
expectTypeOf<TopicMessage<App, string>>().toMatchTypeOf<Message<App[keyof App]>>()

export function narrowing(client: WebMQClient<App>, handler: MessageHandler<{ text: string } | { userId: string }>) {
  client.listen('chat.#', (_, message) => {
    if (message.key === 'chat.42.message') expectTypeOf(message.payload).toEqualTypeOf<{ text: string }>()
    else if (isKey(message, 'typing')) expectTypeOf(message.payload).toEqualTypeOf<{ userId: string }>()
  })
  // A handler that was written for payloads alone
  client.listen('chat.#', handler)
  // @ts-expect-error none of the keys
  client.listen('chat.#', (_, { key }) => key === 'orders.7')
  // @ts-expect-error a client without webmq-client/schema would look for the word "{room}"
  client.listen('chat.{room}.message', () => 1)
}

/** A guard of an app's own. */
function isKey<M extends Chat, S extends string>(
  message: M,
  last: S,
): message is Extract<M, { key: `chat.${string}.${S}` }> {
  return message.key.endsWith(`.${last}`)
}

// With schemas: inputs are published, outputs handled.
const topics = {
  'chat.{room}.message': z.object({ text: z.string(), at: z.string().transform((text) => new Date(text)) }),
  'orders.{#path}': z.object({ id: z.number().default(0) }),
  status: z.enum(['up', 'down']),
}
type Checked = typeof topics & NamedTopics
expectTypeOf<Payload<Checked, 'chat.*.message'>>().toEqualTypeOf<{ text: string; at: Date }>()
expectTypeOf<PayloadInput<Checked, 'chat.7.message'>>().toEqualTypeOf<{ text: string; at: string }>()
expectTypeOf<PayloadInput<Checked, 'orders'>>().toEqualTypeOf<{ id?: number | undefined }>()
expectTypeOf<Payload<Checked, 'orders.eu.7'>>().toEqualTypeOf<{ id: number }>()
expectTypeOf<Payload<Checked, '*'>>().toEqualTypeOf<{ id: number } | 'up' | 'down'>()
expectTypeOf<KnownTopic<Checked, 'status'>>().toEqualTypeOf<'status'>()
expectTypeOf<ListenTopic<Checked, 'chat.{room}.*'>>().toEqualTypeOf<'chat.{room}.*'>()
expectTypeOf<ListenTopic<Checked, 'chat.{room}'>>().toEqualTypeOf<"'chat.{room}' is not a known topic">()

export async function checked(client: WebMQClient<Checked>, room: string) {
  client.listen('chat.{room}.message', ({ at }, { params, topic }) => {
    expectTypeOf(at).toEqualTypeOf<Date>()
    expectTypeOf(params.room).toEqualTypeOf<string>()
    expectTypeOf(topic).toEqualTypeOf<'chat.{room}.message'>()
  })
  // Names of the topic, also of a pattern with wildcards; and of the pattern
  client.listen('chat.*.message', (_, { params }) => expectTypeOf(params.room).toEqualTypeOf<string>())
  client.listen('orders.{region}.*', (_, { params }) => {
    expectTypeOf(params.path).toEqualTypeOf<string>()
    expectTypeOf(params.region).toEqualTypeOf<string>()
  })
  // @ts-expect-error nothing has this name
  client.listen('chat.{room}.message', (_, { params }) => params.user)
  client.listen('#', (_, message) => {
    switch (message.topic) {
      case 'chat.{room}.message':
        expectTypeOf(message.payload.at).toEqualTypeOf<Date>()
        expectTypeOf(message.params.room).toEqualTypeOf<string>()
        break
      case 'orders.{#path}':
        expectTypeOf(message.payload.id).toEqualTypeOf<number>()
        break
      default:
        expectTypeOf(message.payload).toEqualTypeOf<'up' | 'down'>()
    }
  })
  await client.publish(`chat.${room}.message`, { text: 'hi', at: '2026-11-23' })
  // @ts-expect-error an output
  await client.publish(`chat.${room}.message`, { text: 'hi', at: new Date() })
  // @ts-expect-error names belong in patterns
  await client.publish('chat.{room}.message', { text: 'hi', at: '2026-11-23' })
}

// A library takes any client.
export function library(client: AnyClient) {
  client.listen('any.*', (payload) => expectTypeOf(payload).toEqualTypeOf<unknown>())
  void client.publish('any.key', { at: 'all' })
}
export function anyClient(app: WebMQClient<App>, zod: WebMQClient<Checked>, untyped: WebMQClient): void {
  library(app)
  library(zod)
  library(untyped)
  // @ts-expect-error another app's
  const other: WebMQClient<App> = zod
  void other
}
