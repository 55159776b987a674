import { WebMQClient } from 'webmq-client'

export type Client = WebMQClient

/** A client that writes nothing: whoever made it looks at its status. Close it in the end. */
export function createQuietClient(options: ConstructorParameters<typeof WebMQClient>[0]): Client {
  const client = new WebMQClient(options)
  // Errors that matter are thrown by publish and listen.
  client.on('error', () => undefined)
  return client
}
