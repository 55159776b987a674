import { hasInjectionContext, type InjectionKey, inject } from 'vue'
import type { WebMQClient } from '../client.js'
import type { AnyClient } from '../of-client.js'
import { clientOf, type GivenClient } from '../stores/client.js'

/** Gives a client to components: `app.provide(clientKey, client)`. Without it, they use the client of `setup`. */
export const clientKey: InjectionKey<AnyClient> = /* @__PURE__ */ Symbol('webmq-client')

export function useGivenClient(): GivenClient {
  return hasInjectionContext() ? inject(clientKey, undefined) : undefined
}

/** The provided client or, without one, that of `setup`. Not while a server renders: there may be none. */
export function useClient(): WebMQClient {
  return clientOf(useGivenClient())
}
