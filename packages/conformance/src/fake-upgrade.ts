import type { UpgradeRequest } from 'webmq-server/ports'

/** An upgrade request to a `FakeTransport`; absent fields are those of a plain client. */
export type FakeUpgrade = Partial<
  Pick<UpgradeRequest, 'kind' | 'path' | 'query' | 'headers' | 'subprotocols' | 'remoteAddress'>
>
