import { WebMQClient } from './client.js'
import type { ClientOptions } from './client-options.js'
import { invalid } from './options.js'
import type { Topics } from './topics/topics.js'

let instance: WebMQClient | undefined

/**
 * Makes the client that `listen`, `unlisten`, `publish`, `close` and the functions of the parts use, and returns it. Closes
 * the previous one; its subscriptions continue with the new client.
 * @throws {WebMQError} `E_OPTION_INVALID`, naming the option.
 */
export function setup<T = Topics>(options: ClientOptions): WebMQClient<T> {
  const client = new WebMQClient<T>(options)
  const next = client as unknown as WebMQClient
  if (instance) next.replace(instance)
  instance = next
  return client
}

/** {@link WebMQClient.listen} of the default instance. */
export const listen: WebMQClient['listen'] = (...args) => current().listen(...args)

/** {@link WebMQClient.unlisten} of the default instance. */
export const unlisten: WebMQClient['unlisten'] = async (...args) => current().unlisten(...args)

/** {@link WebMQClient.publish} of the default instance. */
export const publish: WebMQClient['publish'] = async (...args) => current().publish(...args)

/** {@link WebMQClient.close} of the default instance; does nothing without one. */
export const close: WebMQClient['close'] = async (options) => instance?.close(options)

/**
 * The client of {@link setup}.
 * @throws {WebMQError} `E_OPTION_INVALID` if there is none.
 */
export function current(): WebMQClient {
  if (!instance) throw invalid('setup')
  return instance
}
