import type { ServerOptions } from 'webmq-server'

/** What all WebMQ nodes of the auction have in common, the gateways too. */
export function systemOptions(env: NodeJS.ProcessEnv) {
  return {
    broker: env.AUCTION_BROKER ?? 'nats://127.0.0.1:4222',
    brokerNamespace: env.AUCTION_NAMESPACE ?? 'auction',
    history: ['auction.#=1000'],
  } satisfies ServerOptions
}
