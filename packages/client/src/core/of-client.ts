import type { WebMQClient } from './client.js'
import type { ClientCore } from './client-part.js'
import { current } from './default-instance.js'
import type { Topics } from './topics/topics.js'

/**
 * A client of any topics, for functions and libraries that take a client: every `WebMQClient<T>` is assignable to it.
 * Its payloads are `unknown`, and it takes every key.
 */
// biome-ignore lint/suspicious/noExplicitAny: only `any` is compatible with every T in both directions
export type AnyClient = WebMQClient<any>

/** Option of the functions of all parts, and of hooks. Their keys and payloads are those of the client's topics. */
export interface ClientOption<T = Topics> {
  /** Default: for hooks that of the provider; otherwise that of `setup`. */
  readonly client?: WebMQClient<T> | undefined
}

/** The same where types may also be named at the call: `presence<Guest>('room.1', { client })`. */
export interface AnyClientOption<T = Topics> {
  /** Default: for hooks that of the provider; otherwise that of `setup`. */
  readonly client?: WebMQClient<T> | AnyClient | undefined
}

/** A client, whatever its topics, or `undefined` for that of `setup`. */
export type GivenClient = AnyClient | undefined

/** Shared by all clients that `setup` makes: subscriptions continue with the next one. */
const DEFAULT_SCOPE = {}

/** The object by which resources of a client are found. */
export function scopeOf(client: GivenClient): object {
  return client ?? DEFAULT_SCOPE
}

/** @throws {WebMQError} `E_OPTION_INVALID` if there is no client: call `setup` first. */
export function clientOf(client: GivenClient): WebMQClient {
  return client ?? current()
}

/** Returns a function that finds the part of a client, and makes it for the first caller. */
export function partOf<P extends object>(make: (core: ClientCore) => P): (client: Pick<AnyClient, 'add'>) => P {
  const parts = new WeakMap<object, P>()
  return (client) => {
    const part = parts.get(client) ?? client.add(make)
    parts.set(client, part)
    return part
  }
}
