// Thousands of WebSocket clients in a process of their own, because the descriptors of a process are limited. They read
// texts of digits, at most 125 bytes after the digits included, and note which number reached whom. See crowd.ts.
import { connect } from 'node:net'

const [port, clientCount, numberCount] = process.argv.slice(2).map(Number)

/** Handshakes in flight. */
const CONNECTING = 250
const READ_BUFFER_BYTES = 64 * 1024

/** Row by row, how often each client got each number. */
const counts = new Uint8Array(clientCount * numberCount)
const closeCodes = {}
let receivedCount = 0
let reorderedCount = 0
let openCount = 0

// All sockets read into one buffer: nothing is kept of it but what is left of a frame.
const buffer = Buffer.allocUnsafe(READ_BUFFER_BYTES)

function handshake(index) {
  const lines = ['Host: a', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
  return `GET /${index} HTTP/1.1\r\n${[...lines, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='].join('\r\n')}\r\n\r\n`
}

function open(index) {
  return new Promise((resolve, reject) => {
    let rest
    let isOpen = false
    let lastNumber = -1
    const read = (length) => {
      let bytes = buffer.subarray(0, length)
      if (rest !== undefined) bytes = Buffer.concat([rest, bytes])
      let offset = 0
      if (!isOpen) {
        const end = bytes.indexOf('\r\n\r\n')
        if (end >= 0) {
          if (!bytes.subarray(0, 12).equals(Buffer.from('HTTP/1.1 101'))) reject(new Error(bytes.toString()))
          isOpen = true
          openCount++
          offset = end + 4
          resolve()
        }
      }
      while (isOpen && offset + 2 <= bytes.length && offset + 2 + bytes[offset + 1] <= bytes.length) {
        const end = offset + 2 + bytes[offset + 1]
        const payload = bytes.subarray(offset + 2, end)
        if (bytes[offset] === 0x81) {
          const number = Number.parseInt(payload.latin1Slice(), 10)
          counts[index * numberCount + number]++
          receivedCount++
          if (number <= lastNumber) reorderedCount++
          lastNumber = number
        } else if (bytes[offset] === 0x88) {
          const code = payload.readUInt16BE(0)
          closeCodes[code] = (closeCodes[code] ?? 0) + 1
          socket.end()
        }
        offset = end
      }
      rest = offset < bytes.length ? Buffer.from(bytes.subarray(offset)) : undefined
      return true
    }
    const socket = connect({ port, host: '127.0.0.1', onread: { buffer, callback: read } })
    socket.on('connect', () => socket.write(handshake(index)))
    socket.on('error', reject)
    socket.on('end', () => socket.end())
  })
}

process.on('message', () => process.send({ openCount, receivedCount, reorderedCount, closeCodes, counts }))
process.on('disconnect', () => process.exit())

let next = 0
const connectInTurn = async () => {
  while (next < clientCount) await open(next++)
}
await Promise.all(Array.from({ length: CONNECTING }, connectInTurn))
process.send({ openCount, receivedCount, reorderedCount, closeCodes, counts })
