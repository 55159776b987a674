import type { WebMQClient } from './client.js'
import type { ClientCore } from './client-part.js'
import { current } from './default-instance.js'

/**
 * A client of any topics, for functions and libraries that take a client: every `WebMQClient<T>` is assignable to it.
 * Its payloads are `unknown`, and it takes every key.
 */
// biome-ignore lint/suspicious/noExplicitAny: only `any` is compatible with every T in both directions
export type AnyClient = WebMQClient<any>

/**
 * The arguments of a part's function, beginning with a client: the one that was given or, without one, that of `setup`.
 *
 * Such a function is declared twice, so that its payloads follow from the topics of its client:
 *
 * ```ts
 * export function history<const K extends string>(key: KnownKey<Topics, K>, options?: HistoryOptions): Promise<…>
 * export function history<T, const K extends string>(client: WebMQClient<T>, key: KnownKey<T, K>, options?: …): Promise<…>
 * export function history(...args: unknown[]) {
 *   const [client, key, options] = ofClient<[key: string, options?: HistoryOptions]>(args)
 * ```
 *
 * @throws {WebMQError} `E_OPTION_INVALID` if there is no client: call `setup` first.
 */
export function ofClient<A extends readonly unknown[]>(args: readonly unknown[]): [client: WebMQClient, ...A] {
  const isGiven = typeof (args[0] as Partial<WebMQClient> | undefined)?.add === 'function'
  return (isGiven ? args : [current(), ...args]) as unknown as [WebMQClient, ...A]
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
