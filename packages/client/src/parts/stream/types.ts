/// <reference lib="esnext.disposable" preserve="true" />

import type { Awaitable } from '../../core/client-options.js'
import type { StreamInput, StreamOutput, StreamTypes } from '../../core/topics/topics.js'
import type { WebMQError } from '../../protocol/errors.js'
import type { StreamStatus } from '../../protocol/streams.js'

/**
 * How far a stream is. `loading`: not known yet. `none`: the key has no stream. `active`: it is being written. `end`: complete.
 * `fail`: its writer has failed. `stop`: it ended because somebody asked. `lost`: its writer is gone, or its end is not known.
 */
export type ReadStatus = 'loading' | 'none' | StreamStatus

/** What a reader gets: of a stream of text its `text`, of one of bytes its `bytes`, which are read-only. */
export type StreamPart =
  | { readonly text: string; readonly bytes?: undefined; readonly isWhole: boolean }
  | { readonly bytes: Uint8Array; readonly text?: undefined; readonly isWhole: boolean }

/** Options of `readStream`. */
export interface ReadStreamOptions {
  /** Reads this stream alone, and waits for it. Default: the last stream of the key, and those that follow. */
  readonly id?: string
  /** Ends the reading when aborted. The stream goes on. */
  readonly signal?: AbortSignal
}

/**
 * Reads the stream of a key, across reconnects. As an iterable it gives the parts of one stream, from its beginning to its
 * end: `isWhole` says that the part replaces everything before. A slow loop gets fewer and larger parts.
 */
export interface StreamReader<S = StreamTypes> extends AsyncIterable<StreamPart>, Disposable {
  readonly key: string
  /** Name of the stream; absent while there is none. */
  readonly id: string | undefined
  readonly status: ReadStatus
  /** What was written so far; `''` while there is nothing. */
  readonly content: string | Uint8Array
  /** Whether something is missing at the beginning or between, because the log does not have it any more. */
  readonly isCut: boolean
  /** What the writer has given to `openStream`. */
  readonly meta: StreamOutput<S, 'meta'> | undefined
  /** What the writer has given to `end`. */
  readonly result: StreamOutput<S, 'result'> | undefined
  /** Why the stream has failed, or the server refuses to read. */
  readonly error: WebMQError | undefined
  /** Resolves when it is known whether there is a stream. Rejects if the server refuses; you may ignore that. */
  readonly ready: Promise<void>
  /**
   * The whole text, once the stream has ended with `end` or `stop`.
   * @throws {WebMQError} The error of the writer, `E_STREAM_ENDED` if the stream was lost, `E_CLOSED`, `E_FORBIDDEN`.
   */
  text(): Promise<string>
  /** The same of a stream of bytes. */
  bytes(): Promise<Uint8Array>
  /** Calls `handler` with what there is and with every further part. Returns a function that ends it. */
  onText(handler: (part: StreamPart) => unknown): () => void
  /** Calls `handler` whenever anything of the reader has changed. Returns a function that ends it. */
  onChange(handler: () => unknown): () => void
  /** Asks the writer to stop. Resolves when it knows, or the stream has ended. @throws {WebMQError} As `request`. */
  stop(reason?: string): Promise<void>
  /** Sends data to the writer, which gets it by `onMessage`. Resolves with its reply. @throws {WebMQError} As `request`. */
  send(data: StreamInput<S, 'message'>): Promise<StreamOutput<S, 'reply'>>
  /** Ends the reading. The stream goes on. */
  close(): void
}

/** Options of `openStream`. */
export interface OpenStreamOptions<S = StreamTypes> {
  /** A JSON value that readers get with the stream. */
  readonly meta?: StreamInput<S, 'meta'>
  /** Name of the stream, 1-36 characters of `[A-Za-z0-9_-]`; default: 128 random bits. */
  readonly id?: string
}

/** Writes a stream, across reconnects. */
export interface StreamWriter<S = StreamTypes> extends AsyncDisposable {
  readonly key: string
  readonly id: string
  /** Aborted when somebody stops the stream, or it can go on no longer. Its `reason` is a `WebMQError`. */
  readonly signal: AbortSignal
  /**
   * Adds text or bytes, which are copied: a stream has one or the other. Appends that wait are sent together. Resolves when the log has it; half a
   * character at its end waits for the other half, or for the end.
   * After {@link signal} the rest of what you have may still follow.
   * @throws {WebMQError} `E_PAYLOAD_INVALID`: it is neither, or not of the kind that the stream has; `E_STREAM_ENDED`: the stream
   * has ended, or was given up; `E_STREAM_LIMIT`, `E_FORBIDDEN`, `E_CLOSED`; retryable: `E_QUEUE_FULL`, too much waits.
   */
  append(content: string | ArrayBuffer | ArrayBufferView): Promise<void>
  /** Ends the stream; after a stop it counts as stopped, and has no result. Resolves when the log has it and all appends. */
  end(result?: StreamInput<S, 'result'>): Promise<void>
  /** Ends the stream as failed; after a stop, as stopped. Readers get the code and the message of a `WebMQError` alone. */
  fail(error: unknown): Promise<void>
  /** Answers what readers send. Returns a function that ends it. */
  onMessage(handler: (data: StreamOutput<S, 'message'>) => Awaitable<StreamInput<S, 'reply'>>): () => void
  /** Fails the stream, unless it has ended. */
  close(): Promise<void>
}
