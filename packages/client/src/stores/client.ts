import type { WebMQClient } from '../client.js'
import { current } from '../default-instance.js'

/** A client, whatever its topics, or `undefined` for that of `setup`. */
export type GivenClient = WebMQClient | undefined

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
