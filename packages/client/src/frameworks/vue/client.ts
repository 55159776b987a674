import { hasInjectionContext, type InjectionKey, inject } from 'vue'
import type { AnyClient, GivenClient } from '../../core/of-client.js'

/** Gives a client to components: `app.provide(clientKey, client)`. Without it, they use the client of `setup`. */
export const clientKey: InjectionKey<AnyClient> = /* @__PURE__ */ Symbol('webmq-client')

/** `client` or, without one, the provided one. */
export function useGivenClient(client: GivenClient): GivenClient {
  return client ?? (hasInjectionContext() ? inject(clientKey, undefined) : undefined)
}
