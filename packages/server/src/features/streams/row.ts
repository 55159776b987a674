import type { StreamFollower } from '../../kernel/session/gateway/event-streams.js'
import type { Feature } from '../feature.js'
import { StreamFeeds, type StreamFeedsContext } from './feed.js'
import { followStream } from './follow.js'
import { SharedStreams } from './shared-streams.js'
import { type JoinWriters, StreamStops } from './stops.js'
import { type StreamStats, Streams, type StreamsContext } from './streams.js'
import { streamVerbs } from './verbs.js'

type Context = StreamsContext & Omit<StreamFeedsContext, 'streams'> & { readonly join: JoinWriters }

export const streams = {
  metrics: {
    webmq_streams:
      'activeCount: Streams that have not ended and that this node watches, because somebody writes or reads them.',
    webmq_stream_bytes: 'keptBytes: Estimated memory of them.',
    webmq_stream_appends_total: 'appendCount: Appends to streams through this node.',
    webmq_streams_lost_total: 'lostCount: Streams that this node has ended because their writer was silent.',
    webmq_streams_lost_failed_total:
      'lostFailedCount: Failed attempts to end such a stream, tried again after `streamLeaseMs`.',
    webmq_stream_roll_ups_failed_total:
      'rollUpFailedCount: Ended streams that stay as their appends in the log: larger than `maxPayloadBytes`, or refused by the broker.',
  },
  open(context: Context) {
    const streams = new Streams(context)
    const sharedStreams = new SharedStreams({ ...context, streams })
    const stops = new StreamStops({ ...context, streams })
    const feeds = new StreamFeeds({ ...context, streams })
    return {
      verbs: streamVerbs(streams),
      closed: ({ connection }) => feeds.release(connection),
      stop: () => streams.stop(),
      stats: () => streams.stats(),
      routes: async () => (await import('./routes.js')).streamRoutes(streams, sharedStreams, stops),
      follower: {
        assertSupported: (key) => streams.assertSupported(key),
        begin: (session, key, cursor) => followStream(feeds, session, key, cursor),
      } satisfies StreamFollower,
      read: streams.read.bind(streams),
      begin: stops.begin.bind(stops),
      /** See {@link StreamStops.failAll}. */
      failAll: () => stops.failAll(),
    }
  },
} satisfies Feature<Context, StreamStats>
