import { getContext, setContext } from 'svelte'
import type { AnyClient } from '../of-client.js'
import type { GivenClient } from '../stores/client.js'

const KEY = 'webmq-client'

/** Option of the functions of this module. */
export interface ClientOption {
  /** Default: that of {@link provideClient} or, without one, that of `setup`. */
  readonly client?: AnyClient
}

/** Gives a client to the components within the one that calls this while it is initialised. */
export function provideClient(client: AnyClient): void {
  setContext(KEY, client)
}

export function givenClient(client: GivenClient): GivenClient {
  return client ?? getContext<GivenClient>(KEY)
}
