import { isIP, connect as tcpConnect } from 'node:net'
import { connect as tlsConnect } from 'node:tls'
import type { ClientOptions } from 'ws'
import type { NodeAddress } from '../judging/record.js'

const LINK_HOST = '127.0.0.1'

/** How a socket to a node is opened: with its token, and through the link in front of it. TLS goes through the link, too. */
export function dialOptions({ url, via, token }: NodeAddress): ClientOptions {
  return {
    ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token()}` } }),
    ...(via === undefined ? {} : { createConnection: through(via, new URL(url)) }),
  }
}

function through(port: number, { protocol, hostname }: URL): NonNullable<ClientOptions['createConnection']> {
  return () => {
    const socket = tcpConnect({ port, host: LINK_HOST, noDelay: true })
    if (protocol !== 'wss:') return socket
    const host = hostname.replace(/^\[|\]$/g, '')
    return tlsConnect({ socket, ...(isIP(host) === 0 ? { servername: host } : {}), ALPNProtocols: ['http/1.1'] })
  }
}
