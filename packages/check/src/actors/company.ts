import { Listener, type ListenerOptions } from './listener.js'
import { Member, type MemberOptions } from './member.js'
import { Publisher, type PublisherOptions } from './publisher.js'
import { Reader, type ReaderOptions } from './reader.js'
import { StreamViewer, type StreamViewerOptions } from './stream-viewer.js'
import { StreamWriter, type StreamWriterOptions } from './stream-writer.js'

/** What others may do with an actor. */
export type ActorOf<T> = Pick<T, keyof T>

/** Who plays the actors of a schedule. */
export interface Company {
  listener(options: ListenerOptions): ActorOf<Listener>
  publisher(options: PublisherOptions): ActorOf<Publisher>
  reader(options: ReaderOptions): ActorOf<Reader>
  /** Missing where nobody can be a member of a queue group. */
  member?(options: MemberOptions): ActorOf<Member>
  writer(options: StreamWriterOptions): ActorOf<StreamWriter>
  viewer(options: StreamViewerOptions): ActorOf<StreamViewer>
  /** For everybody to be live and to get everything, when the last fault is over. */
  readonly settleTimeoutMs: number
  /** Why what it has seen counts for nothing. */
  readonly errors: readonly { readonly owner: string; readonly text: string }[]
}

/** They speak the protocol by themselves. */
export const PROTOCOL: Company = {
  listener: (options) => new Listener(options),
  publisher: (options) => new Publisher(options),
  reader: (options) => new Reader(options),
  member: (options) => new Member(options),
  writer: (options) => new StreamWriter(options),
  viewer: (options) => new StreamViewer(options),
  settleTimeoutMs: 25_000,
  errors: [],
}
