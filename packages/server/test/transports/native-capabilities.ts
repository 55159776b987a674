/** What the native transport must report. */
export const capabilities = {
  tls: true,
  tlsReload: true,
  attach: true,
  threads: true,
  compression: true,
  pause: true,
  overflow: true,
  answers: true,
  unixSocket: true,
  proxyProtocol: true,
  sse: true,
}
