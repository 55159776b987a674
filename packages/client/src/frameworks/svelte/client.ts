import { getContext, setContext } from 'svelte'
import type { AnyClient, GivenClient } from '../../core/of-client.js'

const KEY = 'webmq-client'

/** Gives a client to the components within the one that calls this while it is initialised. */
export function provideClient(client: AnyClient): void {
  setContext(KEY, client)
}

/** `client` or, without one, that of {@link provideClient}. */
export function givenClient(client: GivenClient): GivenClient {
  return client ?? getContext<GivenClient>(KEY)
}
