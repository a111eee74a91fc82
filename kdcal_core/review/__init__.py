"""The review: the loaded files, kept on disk so that they survive reloads and restarts.

Only this package turns uploaded files into a scored set (probabilities, true classes, weights). A
worker process reads and checks the files once; everything else reads the resulting small arrays.
Nothing here depends on the screen: the app and the command line call the same steps.
"""

from kdcal_core.data.labels import default_event
from kdcal_core.review.added_files import add_model, add_table
from kdcal_core.review.arrivals import (
    TABLE_SUFFIXES,
    Arrival,
    TablePlace,
    add_files,
    move_table,
    places_of,
)
from kdcal_core.review.baseline import alike, baseline_of
from kdcal_core.review.doubts import (
    accept_folders,
    accept_rows,
    confirm_class,
    doubt_of_table,
    doubts_of_classes,
    doubts_of_folders,
    doubts_of_rows,
    may_be_swapped,
    open_doubts,
    open_questions,
    swap_classes,
)
from kdcal_core.review.drawn_rows import drawn_words
from kdcal_core.review.first_look import FirstLook, first_look
from kdcal_core.review.folders_on_server import MOST_FOLDERS, gathered_table, server_folders
from kdcal_core.review.further_tables import (
    add_foreign,
    add_training,
    add_watched,
    remove_foreign,
    remove_watched,
)
from kdcal_core.review.known_results import (
    FirstResults,
    Known,
    KnownResults,
    PlaceInList,
    note_results,
    root_of_audits,
)
from kdcal_core.review.named_files import (
    NamedFiles,
    check_files,
    check_outputs,
    event_of,
    need,
    need_groups,
    scored_review,
)
from kdcal_core.review.personal import PersonalWorkspace
from kdcal_core.review.question import (
    CASES,
    RETIRED,
    Decision,
    Limit,
    Question,
    View,
)
from kdcal_core.review.reader import (
    PARTS,
    Part,
    ReviewData,
    ReviewReader,
    check_scored,
    identity,
    review_data,
)
from kdcal_core.review.requirements import constant_target, no_target_words
from kdcal_core.review.review import (
    ColumnInfo,
    Owner,
    Review,
    SetInfo,
    SignatureInfo,
    TableInfo,
    Which,
    dependence_words,
    group_columns,
    input_columns,
    left_out,
    left_out_words,
    offered_groups,
    undeclared_groups,
)
from kdcal_core.review.samples import Sample, samples, start_sample
from kdcal_core.review.signature import KEY_SUFFIXES, SIGNATURE_SUFFIXES, add_signature
from kdcal_core.review.steps import (
    DIVIDED,
    create_review,
    note_verdict,
    read_review,
    rename_review,
    score,
    set_decision,
    set_question,
    set_roles,
    set_task,
    settle,
    split_table,
)
from kdcal_core.review.workspace import Workspace

__all__ = [
    "CASES",
    "DIVIDED",
    "KEY_SUFFIXES",
    "MOST_FOLDERS",
    "PARTS",
    "RETIRED",
    "SIGNATURE_SUFFIXES",
    "TABLE_SUFFIXES",
    "Arrival",
    "ColumnInfo",
    "Decision",
    "FirstLook",
    "FirstResults",
    "Known",
    "KnownResults",
    "Limit",
    "NamedFiles",
    "Owner",
    "Part",
    "PersonalWorkspace",
    "PlaceInList",
    "Question",
    "Review",
    "ReviewData",
    "ReviewReader",
    "Sample",
    "SetInfo",
    "SignatureInfo",
    "TableInfo",
    "TablePlace",
    "View",
    "Which",
    "Workspace",
    "accept_folders",
    "accept_rows",
    "add_files",
    "add_foreign",
    "add_model",
    "add_signature",
    "add_table",
    "add_training",
    "add_watched",
    "alike",
    "baseline_of",
    "check_files",
    "check_outputs",
    "check_scored",
    "confirm_class",
    "constant_target",
    "create_review",
    "default_event",
    "dependence_words",
    "doubt_of_table",
    "doubts_of_classes",
    "doubts_of_folders",
    "doubts_of_rows",
    "drawn_words",
    "event_of",
    "first_look",
    "gathered_table",
    "group_columns",
    "identity",
    "input_columns",
    "left_out",
    "left_out_words",
    "may_be_swapped",
    "move_table",
    "need",
    "need_groups",
    "no_target_words",
    "note_results",
    "note_verdict",
    "offered_groups",
    "open_doubts",
    "open_questions",
    "places_of",
    "read_review",
    "remove_foreign",
    "remove_watched",
    "rename_review",
    "review_data",
    "root_of_audits",
    "samples",
    "score",
    "scored_review",
    "server_folders",
    "set_decision",
    "set_question",
    "set_roles",
    "set_task",
    "settle",
    "split_table",
    "start_sample",
    "swap_classes",
    "undeclared_groups",
]


def __dir__() -> list[str]:
    return sorted(__all__)
