/** The promises, and what it is called when one was not kept. */
export const RULES = {
  lost: 'a message is missing, and no gap stands between its neighbours',
  twice: 'a listen was given a message twice',
  'out-of-order': 'a message came after a later one of its publisher, or of the log',
  'before-since': 'a replay contains what is at or before `since`',
  'not-live-yet': 'a live message came that no live listen matches',
  'live-falls': 'live positions of a connection do not rise',
  'position-reused': 'two messages have one position',
  'position-moved': 'a message has two positions in one epoch',
  'position-missing':
    'a message, or the ok of its publish, has no position though its key is logged, or has one though it is not',
  'position-refused': 'a position that a server has given is called invalid',
  'position-falls': 'the position of an answer is before its messages or before `since`',
  'epoch-unannounced': 'messages of another log came without a gap',
  'neither-recovered-nor-gap': 'the answer to `since` says neither or both',
  'recovered-untrue': '`recovered` for another epoch, or for a pattern that is not logged',
  'gap-untrue': 'the reason of a gap is not true',
  'gap-untold': 'the log was lost, and a listener was told no gap',
  'replayed-untrue': 'more or fewer messages came than `replayed` says',
  'more-untrue': 'an answer says `more` without a position',
  'last-untrue': '`last` did not give the newest that the log holds',
  'limit-untrue': 'more messages came than were asked for',
  'read-hole': 'a read of the log leaves out what is in it',
  'read-stale': 'a read of the log does not reach what was accepted before',
  'wrong-key': 'a message has a key that its pattern does not match, or not its own',
  alien: 'a message was never published, or its payload has changed',
  'duplicate-untrue': '`duplicate` for the only publish of an id',
  'duplicate-untold': 'two publishes of an id were accepted as if each were the first',
  echoed: 'a message with `noecho` came back to the connection that published it',
  'task-lost': 'a message came to no member of a queue group',
  'task-twice': 'a message came to two members of a queue group',
  'text-untrue': 'a reader of a stream shows what its writer has not written, or an end that it has not',
  'text-short': 'a stream is shown without what its writer was told to be in the log',
  'stream-lost': 'a stream is lost, though its writer was heard',
  'stream-endless': 'a stream has not ended, though its writer is gone',
  'stop-untrue': 'a stop reached writers twice, or was answered and reached none',
  refused: 'a request was refused for good, though nothing is wrong with it',
  'no-answer': 'a request was not answered, and its connection not ended, in time',
  'slow-answer': 'a request was answered too late',
  'slow-delivery': 'a live message came too late',
  'replay-endless': 'a replay did not end in time',
  'not-live': 'a listen was not live at the end of the run',
  'close-code': 'a connection was closed with a code that nothing in the run explains',
  breach: 'the server sent what `webmq.v1` does not allow',
} as const

export type RuleName = keyof typeof RULES

/** A promise that was not kept. */
export interface Violation {
  readonly rule: RuleName
  readonly atMs: number
  /** Who saw it: the name of an actor. */
  readonly owner: string
  readonly text: string
}

export type Report = (rule: RuleName, atMs: number, owner: string, text: string) => void
