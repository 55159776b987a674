import { describe, expect, it } from 'vitest'
import { AckSubject } from './ack-subject.js'

const TOLD = { sequence: 1_234, consumerSequence: 56, timeMs: 1_795_312_840_068, timeNs: 405_309, pendingCount: 7 }

describe('AckSubject', () => {
  it.each([
    '$JS.ACK.chat-log.uLJRa5zw.1.1234.56.1795312840068405309.7',
    '$JS.ACK._.hash.chat-log.uLJRa5zw.1.1234.56.1795312840068405309.7',
    '$JS.ACK.hub.hash.chat-log.uLJRa5zw.1.1234.56.1795312840068405309.7.token',
  ])('reads %s', (text) => {
    const subject = new AckSubject()
    const bytes = Buffer.from(`MSG a 2 ${text} 5`)
    for (let time = 0; time < 2; time++) {
      expect(subject.read(bytes, 8, 8 + text.length)).toBe(true)
      expect({ ...subject }).toEqual(TOLD)
    }
  })

  it.each(['', '$JS.FC.a.b.c', '$JS.ACK.a.b.1.2.3', '_INBOX.a'])('does not take %j for one', (text) => {
    expect(new AckSubject().read(Buffer.from(text), 0, text.length)).toBe(false)
  })
})
