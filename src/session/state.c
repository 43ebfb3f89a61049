/* States: values that a session keeps from run to run. They lie in the part of the arena that bindings share, so every
 * binding sees the same contents. */
#include "base/math.h"
#include "session/session.h"

/* Saved states: this header, then every state in the order of the graph, each aligned to 8 bytes. */
typedef struct header {
  char mark[8];
  uint64_t fingerprint; /* of names, types and extents */
} header;

static const char mark[8] = {'b', 'e', 'r', 't', 'h', 's', 't', '1'};

static const berth__value *session_state_at(const berth_session *session, size_t index) {
  return &berth__session_current(session)->plan->graph->values[session->graph->states[index]];
}

static uint64_t session_state_size_of(const berth__value *value) {
  uint64_t size = 0;
  berth__value_size(value, &size); /* the value is bound */
  return size;
}

static berth_status place_initial(berth_session *session, size_t index, berth_error *err) {
  const berth_value id = session->graph->states[index];
  const berth__value *value = session_state_at(session, index);
  if (value->initial == NULL)
    BERTH__TRY(berth_arena_fill(session->arena, id, 0, berth_arena_capacity(session->arena, id), 0, err));
  else
    BERTH__TRY(
        berth__arena_put(session->arena, id, 0, berth__blob_data(value->initial), session_state_size_of(value), err));
  session->is_lost[index] = false;
  return BERTH_OK;
}

/* A new arena holds zeros, which cost nothing until they are touched: a cache takes memory as it fills. */
berth_status berth__session_begin_states(berth_session *session, berth_error *err) {
  for (size_t i = 0; i < session->graph->n_states; i++)
    if (session->checked || session_state_at(session, i)->initial != NULL) BERTH__TRY(place_initial(session, i, err));
  return BERTH_OK;
}

static berth_status find_state(const berth_session *session, const char *name, size_t *index, berth_error *err) {
  if (session == NULL || name == NULL) return berth__fail(err, BERTH_INVALID, "a session and a name are needed");
  BERTH__TRY(berth__session_idle(session, err));
  for (*index = 0; *index < session->graph->n_states; ++*index)
    if (strcmp(session->graph->values[session->graph->states[*index]].name, name) == 0) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "graph '%s' has no state '%s'", session->graph->name, name);
}

static berth_status session_state_check_size(const berth__value *value, const void *data, size_t size,
                                             berth_error *err) {
  char shape[BERTH__SHAPE_TEXT];
  if (session_state_size_of(value) != size)
    return berth__fail(err, BERTH_INVALID, "state '%s' is %s%s and has %llu byte%s, but %zu %s given", value->name,
                       berth_type_name(value->type), berth__shape_text(&value->shape, shape),
                       (unsigned long long)session_state_size_of(value), berth__plural(session_state_size_of(value)),
                       size, size == 1 ? "was" : "were");
  if (data == NULL && size != 0) return berth__fail(err, BERTH_INVALID, "state '%s': the data is NULL", value->name);
  return BERTH_OK;
}

berth_status berth_session_state_read(berth_session *session, const char *state, void *dst, size_t size,
                                      berth_error *err) {
  size_t index;
  BERTH__TRY(find_state(session, state, &index, err));
  BERTH__TRY(session_state_check_size(session_state_at(session, index), dst, size, err));
  BERTH__TRY(berth__session_check_lost(session, err));
  return berth__arena_get(session->arena, session->graph->states[index], dst, size, err);
}

berth_status berth_session_state_write(berth_session *session, const char *state, const void *src, size_t size,
                                       berth_error *err) {
  size_t index;
  BERTH__TRY(find_state(session, state, &index, err));
  BERTH__TRY(session_state_check_size(session_state_at(session, index), src, size, err));
  BERTH__TRY(berth__arena_put(session->arena, session->graph->states[index], 0, src, size, err));
  session->is_lost[index] = false;
  return BERTH_OK;
}

berth_status berth_session_state_reset(berth_session *session, const char *state, berth_error *err) {
  size_t index;
  if (session == NULL) return berth__fail(err, BERTH_INVALID, "the session is NULL");
  BERTH__TRY(berth__session_idle(session, err));
  for (size_t i = 0; state == NULL && i < session->graph->n_states; i++) BERTH__TRY(place_initial(session, i, err));
  if (state == NULL) return BERTH_OK;
  BERTH__TRY(find_state(session, state, &index, err));
  return place_initial(session, index, err);
}

/* ---- All of them ---- */

static uint64_t session_state_padded(uint64_t size) {
  return (size + 7) & ~(uint64_t)7;
} /* the planner has checked that the sum does not overflow */

uint64_t berth_session_state_size(const berth_session *session) {
  uint64_t total = sizeof(header);
  if (session == NULL || session->graph->n_states == 0) return 0;
  for (size_t i = 0; i < session->graph->n_states; i++)
    total += session_state_padded(session_state_size_of(session_state_at(session, i)));
  return total;
}

static uint64_t session_state_mix(uint64_t sum, const void *data, size_t size) {
  const unsigned char *bytes = data;
  for (size_t i = 0; i < size; i++) sum = (sum ^ bytes[i]) * 0x100000001b3u; /* FNV-1a */
  return sum;
}

static header header_of(const berth_session *session) {
  header h = {.fingerprint = 0xcbf29ce484222325u};
  memcpy(h.mark, mark, sizeof h.mark);
  for (size_t i = 0; i < session->graph->n_states; i++) {
    const berth__value *value = session_state_at(session, i);
    const uint32_t type = (uint32_t)value->type;
    h.fingerprint = session_state_mix(h.fingerprint, value->name, strlen(value->name) + 1);
    h.fingerprint = session_state_mix(h.fingerprint, &type, sizeof type);
    h.fingerprint = session_state_mix(h.fingerprint, value->shape.dim, value->shape.rank * sizeof *value->shape.dim);
  }
  return h;
}

static berth_status check_whole(const berth_session *session, const void *data, size_t size, berth_error *err) {
  if (session == NULL) return berth__fail(err, BERTH_INVALID, "the session is NULL");
  BERTH__TRY(berth__session_idle(session, err));
  if (size != berth_session_state_size(session))
    return berth__fail(err, BERTH_INVALID, "the states of graph '%s' take %llu byte%s, but %zu %s given",
                       session->graph->name, (unsigned long long)berth_session_state_size(session),
                       berth__plural(berth_session_state_size(session)), size, size == 1 ? "was" : "were");
  if (data == NULL && size != 0) return berth__fail(err, BERTH_INVALID, "the data is NULL");
  return BERTH_OK;
}

static berth_status get_all(berth_session *session, void *dst, size_t size, berth_error *err) {
  const header h = header_of(session);
  unsigned char *at = dst;
  memset(at, 0, size);
  memcpy(at, &h, sizeof h);
  at += sizeof h;
  for (size_t i = 0; i < session->graph->n_states; i++) {
    const uint64_t bytes = session_state_size_of(session_state_at(session, i));
    BERTH__TRY(berth__arena_get(session->arena, session->graph->states[i], at, bytes, err));
    at += session_state_padded(bytes);
  }
  return BERTH_OK;
}

berth_status berth_session_state_save(berth_session *session, void *dst, size_t size, berth_error *err) {
  BERTH__TRY(check_whole(session, dst, size, err));
  BERTH__TRY(berth__session_check_lost(session, err));
  return size == 0 ? BERTH_OK : get_all(session, dst, size, err);
}

static berth_status put_all(berth_session *session, const unsigned char *at, berth_error *err) {
  at += sizeof(header);
  for (size_t i = 0; i < session->graph->n_states; i++) {
    const uint64_t bytes = session_state_size_of(session_state_at(session, i));
    BERTH__TRY(berth__arena_put(session->arena, session->graph->states[i], 0, at, bytes, err));
    at += session_state_padded(bytes);
  }
  return BERTH_OK;
}

/* If an element cannot be stored on the device, this is noticed on the way, and everything is put back. */
berth_status berth_session_state_restore(berth_session *session, const void *src, size_t size, berth_error *err) {
  BERTH__TRY(check_whole(session, src, size, err));
  if (size == 0) return BERTH_OK;
  const header h = header_of(session);
  if (memcmp(src, &h, sizeof h) != 0)
    return berth__fail(err, BERTH_INVALID,
                       "the states to restore were not saved from a session of graph '%s' with these extents",
                       session->graph->name);
  unsigned char *before = berth__alloc(session->ctx, size);
  if (before == NULL) return berth__fail_nomem(err, "restoring states");
  berth_status status = get_all(session, before, size, err);
  if (status == BERTH_OK) {
    status = put_all(session, src, err);
    if (status != BERTH_OK)
      put_all(session, before, NULL);
    else
      berth__session_keep_states(session);
  }
  berth__free(session->ctx, before);
  return status;
}
