// Clients of a measurement: sockets that only read, or only write. They cost the client process little.
import net from 'node:net'

/** A masked text frame; the mask is zero. */
function frame(text) {
  const body = Buffer.from(text)
  const length = body.length < 126 ? [0x80 | body.length] : [0x80 | 126, body.length >> 8, body.length & 255]
  return Buffer.concat([Buffer.from([0x81, ...length, 0, 0, 0, 0]), body])
}

/** Opens a WebSocket and sends a first message on it. */
export function openWebSocket(port, { token, first }) {
  const head = [
    'GET /ws HTTP/1.1',
    'Host: localhost',
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Protocol: webmq.v1',
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
  ]
  return open(port, head, (socket) => first !== undefined && socket.write(frame(first)))
}

/** Opens an event stream. */
export function openEventStream(port, { pattern }) {
  const path = `/sse?listen=${encodeURIComponent(pattern)}`
  return open(port, [`GET ${path} HTTP/1.1`, 'Host: localhost', 'Accept: text/event-stream'], () => undefined)
}

function open(port, head, opened) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write(`${head.join('\r\n')}\r\n\r\n`))
    socket.once('error', reject)
    socket.once('data', (bytes) => {
      const [status = ''] = bytes.toString('latin1').split('\r\n', 1)
      if (!/ (101|200) /.test(status)) return reject(new Error(status))
      opened(socket)
      socket.resume()
      resolve(socket)
    })
  })
}
