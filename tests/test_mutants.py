"""Every error that is planted to see whether a test finds it, with the test of ``./check`` that does.

Whoever makes a test smaller keeps these. Each entry is a file and a test in it, which plants the error itself; with
brackets, the error is one of its parameters.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MUTANTS = {
    "oracles/test_pieces": {
        "a piece of the region that is forgotten": "test_a_planted_error_is_found[pieces_that_are_forgotten]",
        "expansions on boxes without remainders": "test_a_planted_error_is_found[no_remainders]",
        "Euclidean norms on boxes": "test_euclidean_norms_on_a_box_are_found",
        "multipliers of any sign": "test_a_planted_error_in_bounds_is_found[multipliers_of_any_sign]",
        "half-spaces that cut off points of a box": (
            "test_a_planted_error_in_bounds_is_found[half_spaces_that_are_too_close]"
        ),
        "a ball that is too small": "test_a_planted_error_in_bounds_is_found[a_ball_of_the_wrong_side]",
    },
    "unit/test_assumptions": {
        "differences without assumptions": "test_a_planted_error_is_found[differences_print_none]",
        "practice that is taken for known": "test_a_planted_error_is_found[practice_is_not_said_to_be_an_estimate]",
        "runs in no order that need not be alike": "test_a_planted_error_is_found[runs_need_not_be_alike]",
        "rewards of any size": "test_a_planted_error_is_found[values_may_lie_anywhere]",
        "steps that may be there twice": "test_a_planted_error_is_found[steps_may_be_there_twice]",
        "an assumption that is not needed": "test_a_planted_error_is_found[the_amount_is_always_planned]",
    },
    "theorems/test_theorem_2": {
        "intervals of events that are too short": "test_a_region_that_is_too_small_is_noticed",
    },
    "oracles/test_time_fairness": {
        "parts of data that end before a success": "test_a_part_that_ends_before_heads_is_found",
        "parts of data that were cut by looking": "test_a_cut_by_looking_is_found",
        "a pilot that is replaced by looking": "test_a_pilot_that_is_replaced_by_looking_is_found",
        "a law that knows what comes after a change": "test_a_law_that_knows_what_comes_is_found",
    },
    "statistical/test_time_size": {
        "outcomes that are filed a part later": "test_outcomes_that_are_filed_a_part_later_are_found",
    },
    "unit/test_run_bets": {
        "runs that are announced after looking": "test_runs_announced_after_looking_exclude_the_truth_too_often",
        "halving where bets may win less against smaller means": (
            "test_an_excluded_cell_says_nothing_of_cells_below_it"
        ),
        "sizes that know the task of their run": "test_sizes_that_know_the_task_are_not_fair",
        "a chance of arms that is wrong": "test_a_wrong_chance_of_arms_is_found",
        "the least outcome of a second arm": (
            "test_a_run_of_the_second_arm_that_is_not_known_lowers_the_lower_end_by_its_best_outcome"
        ),
    },
    "unit/test_agreement": {
        "cells that have seen nothing": "test_a_cell_that_has_seen_nothing_is_refused_wherever_it_is[1]",
        "a test without evidence that silences others": "test_a_test_without_evidence_silences_no_other_test[1]",
    },
    "unit/test_logs_as_they_are": {
        "a missing row that is passed over": "test_a_missing_row_that_is_passed_over_is_a_false_transition",
    },
    "unit/test_difference_verdicts": {
        "verdicts that want larger costs": "test_a_planted_error_in_verdicts_is_found[costs are wanted]",
        "verdicts by one end": "test_a_planted_error_in_verdicts_is_found[one end for both]",
        "margins that move zero": "test_a_planted_error_in_verdicts_is_found[margins on both sides of zero]",
    },
    "unit/test_memory": {
        "steps before a window that are passed over": "test_a_planted_error_in_passing_over_steps_is_found",
    },
    "unit/test_missions": {
        "marks of steps that overlap, by the last line": "test_automata_that_are_not_read_are_refused_by_name",
    },
    "unit/test_contradictory_rows": {
        "the better of two rows that contradict each other": "test_keeping_the_better_of_two_rows_is_found",
        "runs of one name that count where they agree": "test_runs_that_share_names_do_not_count_where_they_agree",
    },
    "unit/test_periods": {
        "two looks in one month that count if they agree": (
            "test_whether_two_looks_in_one_month_agree_does_not_decide_what_is_counted"
        ),
    },
    "unit/test_announced_policies": {
        "first data of a later part that announce a policy": (
            "test_what_came_first_of_the_second_counts_of_a_sum_did_not_come_before_its_bets"
        ),
    },
    "oracles/test_left_tables": {
        "tables whose unknown takes a step": "test_a_planted_error_is_found[elsewhere_costs_a_step]",
        "tables in whose unknown no label holds": "test_a_planted_error_is_found[labels_are_false_elsewhere]",
        "products that know more than their table": (
            "test_a_planted_error_is_found[products_forget_what_is_not_known]"
        ),
        "labels that are impossible as no state of a table has them": (
            "test_a_planted_error_is_found[labels_that_no_state_has_are_impossible]"
        ),
        "tables whose unknown costs nothing": "test_a_planted_error_is_found[steps_elsewhere_cost_nothing]",
        "a discount on what nature chooses": "test_a_planted_error_is_found[discounts_count_what_nature_chooses]",
        "one end of what is unknown for both": "test_a_planted_error_is_found[bets_take_one_end_for_both]",
    },
    "oracles/test_points": {
        "a remainder that is left out": "test_a_planted_error_is_found[the_remainder_is_left_out]",
        "ellipsoids that are too small": "test_a_planted_error_is_found[ellipsoids_lose_points]",
        "balls that are too small": "test_a_planted_error_is_found[balls_lose_points]",
        "bounds of another policy": "test_a_planted_error_is_found[bounds_are_those_of_another_policy]",
        "intervals that are too short": "test_a_planted_error_is_found[intervals_lose_their_ends]",
        "a misfit that is forgotten": "test_a_planted_error_is_found[rows_that_are_off_cost_nothing]",
        "one nature for both ends": "test_a_planted_error_is_found[one_nature_gives_both_ends_of_a_complement]",
        "swapped ends of a complement": "test_a_planted_error_is_found[ends_are_swapped_at_a_complement]",
        "sweeps that stop early": "test_a_planted_error_is_found[sweeps_stop_early]",
    },
    "oracles/test_verify_table_errors": {
        "false certificates of tables without curvature": ("test_a_planted_error_is_found_in_its_layer[no_curvature]"),
        "false certificates of tables without what bets miss": ("test_a_planted_error_is_found_in_its_layer[no_miss]"),
        "false certificates of tables by rows that are too certain": (
            "test_a_planted_error_is_found_in_its_layer[rows_are_too_certain]"
        ),
        "false certificates of tables by intervals that are too narrow": (
            "test_a_planted_error_is_found_in_its_layer[intervals_are_too_narrow]"
        ),
        "false certificates of tables by an error that is spent twice": (
            "test_a_planted_error_is_found_in_its_layer[both_sides_have_all_of_the_error]"
        ),
        "false certificates of tables by tied rows in a mixture": (
            "test_a_planted_error_is_found_in_its_layer[tied_rows_are_mixed]"
        ),
        "false certificates of tables by weights that look ahead": (
            "test_a_planted_error_is_found_in_its_layer[weights_look_at_all_data]"
        ),
        "false certificates of tables for a policy that was chosen later": (
            "test_a_planted_error_is_found_in_its_layer[the_policy_is_chosen_later]"
        ),
    },
    "oracles/test_verify_planted_bugs": {
        "false certificates by bounds that are too narrow": (
            "test_a_planted_error_is_found_in_its_layer[coupled_bounds_are_too_narrow]"
        ),
        "false certificates by evidence that is too large": (
            "test_a_planted_error_is_found_in_its_layer[the_evidence_is_too_large]"
        ),
        "false certificates by an error that is spent twice": (
            "test_a_planted_error_is_found_in_its_layer[every_part_has_the_whole_error]"
        ),
        "false certificates by events that runs try twice": (
            "test_a_planted_error_is_found_in_its_layer[every_event_is_tried_once]"
        ),
        "false certificates by twin outcomes": "test_bets_on_twin_outcomes_are_found",
        "false differences by remainders that do not cancel": (
            "test_a_planted_error_in_a_difference_is_found[remainders_are_said_to_cancel]"
        ),
        "false differences by a slope with the wrong sign": (
            "test_a_planted_error_in_a_difference_is_found[the_slope_of_the_rival_has_the_wrong_sign]"
        ),
        "studies that have the whole error": (
            "test_a_planted_error_of_other_studies_is_found[studies_have_the_whole_error-budget]"
        ),
        "values of rewards that count ten times": (
            "test_a_planted_error_of_learned_rewards_is_found[values_count_ten_times-bets]"
        ),
        "false certificates by half of a range": (
            "test_a_planted_error_of_rows_that_are_off_is_found[residuals_have_half_of_the_range]"
        ),
        "earlier intervals that are too narrow": (
            "test_a_planted_error_of_learning_while_acting_is_found[earlier_intervals_are_too_narrow]"
        ),
        "bets of a solver that was used on later data": "test_a_solver_that_was_used_on_later_data_is_found",
    },
    "unit/test_verify_pieces": {
        f"{name}, in pieces": f"test_a_forged_step_is_told[{name}]"
        for name in (
            "a negative multiplier of a side",
            "a side that does not follow",
            "a side that proves itself",
            "a parabola where no cube is known yet",
            "a cube that is too small",
            "one half of a cube",
            "nothing on one half",
            "multipliers without functions",
            "a piece that is called empty",
            "an empty set by negative multipliers",
            "a smaller ball",
            "a point that is not in the set",
            "larger functions",
            "smaller functions",
            "negative multipliers of cuts",
            "negative multipliers of the cube",
        )
    }
    | {
        "functions of the other half of a cube": "test_functions_of_the_other_half_are_found",
        "parabolas that hold at the centre alone": "test_parabolas_that_hold_at_the_centre_alone_are_found",
        "sizes on a ball that is too small": "test_sizes_on_a_smaller_ball_are_found[0.9]",
        "norms of a ball on a cube": "test_sizes_on_a_smaller_ball_are_found[None]",
    },
    "unit/test_forgeries": {
        f"{name}, forged": f"test_a_forgery_is_told[{name}]"
        for name in (
            "the worse policy is called better",
            "another objective",
            "another policy",
            "a name with a second sentence",
            "no assumptions",
            "another way of sampling",
            "an announced objective without a text",
            "invented counts of a table without bets",
            "rows of a table that trade their counts",
            "a policy of a table that was chosen later",
            "a mission that nothing supports if rows are off",
            "a mission whose support is left out",
            "the support of a table",
            "a report that says more",
            "counts of earlier updates",
            "a study that is a sentence",
            "a study of something else, in other words",
            "bets on a policy that was chosen later",
            "a file whose name is a sentence",
            "counts that were looked at earlier",
            "an automaton from a file of the forger",
        )
    },
    "unit/test_forged_origins": {
        f"{name}, of a forger": f"test_another_model_or_other_data_than_ones_own_are_found[{name}]"
        for name in (
            "a narrower space",
            "another row off the chain",
            "another target",
            "another model beside the witness",
            "invented runs",
            "bets at other moments",
            "another division of the error",
            "values of a reward that there is not",
            "data that contradict the model",
            "an archive that unpacks to too much",
        )
    }
    | {"code of a forger": "test_a_file_of_defaults_beside_a_result_runs_nothing"},
    "verify/test_verify_opponent": {
        "a proof from a class that no row draws from": "test_a_class_that_no_row_draws_from_says_nothing",
        "a proof from a set without points": "test_nothing_follows_from_a_set_without_points",
        "rows that are left out of a likelihood": "test_rows_cannot_be_left_out_of_the_likelihood",
        "trials that suit": "test_trials_of_an_event_are_those_of_all_rows_that_try_it",
    },
    "oracles/test_verify_second_look": {
        "bets on the side that later data show": (
            "test_bets_on_a_side_that_later_data_show_and_other_counts_are_found"
        ),
    },
    "oracles/test_drawn_points": {
        "a wrong weight of a draw": "test_a_planted_error_of_draws_is_found[one_weight_is_wrong]",
        "turned weights in coupled bounds": (
            "test_a_planted_error_of_draws_is_found[weights_of_coupled_bounds_are_turned]"
        ),
    },
    "oracles/test_mixed": {
        "ties of rows whose expressions differ": "test_ties_of_different_expressions_are_found",
    },
    "oracles/test_difference_points": {
        "remainders that cancel": "test_a_planted_error_is_found[remainders_cancel]",
        "policies that change places": "test_a_planted_error_is_found[policies_change_places]",
        "bounds of other expressions": "test_a_planted_error_is_found[expressions_are_numbered_anew]",
    },
    "oracles/test_reward_points": {
        "rewards that nature picks too low": "test_a_planted_error_is_found[natures_pick_the_least]",
        "coins that pay nothing": "test_a_planted_error_is_found[coins_pay_nothing]",
        "payments that are discounted": "test_a_planted_error_is_found[payments_are_not_divided]",
    },
    "oracles/test_long_run": {
        "cycles of a difference that are too long": "test_a_difference_with_cycles_that_are_too_long_is_found",
        "averages on pieces with cycles that are too long": (
            "test_an_average_on_pieces_with_cycles_that_are_too_long_is_found"
        ),
        "averages divided by too much": "test_a_planted_error_is_found[dividing_by_too_much]",
        "rewards before the first cycle": "test_a_planted_error_is_found[counting_from_the_start]",
    },
    "oracles/test_mission_histories": {
        "a first letter that is skipped": "test_a_wrong_memory_is_found[skips_the_initial_letter]",
        "letters of the state before": "test_a_wrong_memory_is_found[reads_the_state_that_is_left]",
        "a conjunct that is dropped": "test_a_wrong_memory_is_found[drops_a_conjunct]",
        "the stronger alternative": "test_a_wrong_memory_is_found[takes_the_stronger_alternative]",
        "a longer window": "test_a_wrong_memory_is_found[window_is_one_step_longer]",
        "a budget for the goal": "test_a_wrong_memory_is_found[pays_for_the_goal]",
        "a state after the last": "test_a_wrong_memory_is_found[the_last_state_has_a_next_one]",
        "a last state that is not read": "test_a_wrong_memory_is_found[the_end_is_not_read]",
    },
    "oracles/test_recurrence": {
        "marks that change places": "test_wrong_acceptance_is_found[marks_change_places]",
        "a goal that is forgotten": "test_wrong_acceptance_is_found[one_goal_is_forgotten]",
        "bad states that may be passed": "test_wrong_acceptance_is_found[bad_states_may_be_passed]",
        "a minimum that is not negated": "test_wrong_acceptance_is_found[the_minimum_is_not_negated]",
        "a goal that is never left": "test_a_policy_that_does_not_win_is_found[the_first_goal_is_never_left]",
        "any choice inside": "test_a_policy_that_does_not_win_is_found[any_choice_inside_wins]",
    },
    "oracles/test_quantiles": {
        "sides that are swapped": "test_a_wrong_sweep_is_found[sides_are_swapped]",
        "one budget more that is refuted": "test_a_wrong_sweep_is_found[one_more_is_refuted]",
        "a mission that ends late": "test_a_mission_that_ends_a_step_late_is_found",
    },
    "oracles/test_constraints": {
        "a search that forgets thresholds": "test_a_search_that_forgets_the_threshold_is_found",
    },
    "unit/test_proposed_ties": {
        "parts that look ahead": "test_a_planted_look_ahead_into_what_comes_next_is_found",
    },
    "oracles/test_advantages": {
        "rows taken for the same": "test_a_planted_error_is_found[rows_are_taken_for_the_same]",
        "a rival without remainder": "test_a_planted_error_is_found[the_rival_has_no_remainder]",
    },
    "oracles/test_greedy_steps": {
        "greedy steps by the average alone": "test_steps_by_the_average_alone_are_found",
    },
    "statistical/test_constraint_coverage": {
        "thresholds kept by the wrong bound": "test_thresholds_that_are_kept_by_the_wrong_bound_are_found",
    },
    "oracles/test_net_benefit": {
        "a proof at one weight for all": "test_a_proof_at_one_weight_for_all_weights_is_found",
        "sums without remainders": "test_sums_without_remainders_are_found",
    },
    "unit/test_learned_rewards": {
        "values at the ends of their range": "test_values_that_are_rounded_to_the_ends_are_found",
        "a wrong constant in what values win": "test_bounds_that_win_too_much_are_found[a wrong constant]",
        "squares of values in other units": "test_bounds_that_win_too_much_are_found[squares in other units]",
        "bets on values that look ahead": "test_bets_whose_size_is_chosen_by_main_data_are_found",
        "rewards of PRISM files that are left out": "test_rewards_that_storm_builds_otherwise_are_found",
    },
    "statistical/test_reward_coverage": {
        "values that count ten times": "test_values_that_count_ten_times_are_found",
    },
    "unit/test_pilots": {
        "pilots of a table with the weight of others": "test_pilots_of_a_table_with_the_weight_of_others_are_found",
    },
    "oracles/test_drawn_splits": {
        "one draw for all data": "test_one_draw_for_all_data_is_found",
    },
    "statistical/test_chosen_policies": {
        "bets on a policy that the data chose": "test_bets_on_a_policy_that_all_data_chose_are_found",
    },
    "statistical/test_difference_coverage": {
        "bets on a pair that main data showed": "test_bets_on_a_pair_that_was_picked_after_looking_are_found",
    },
    "statistical/test_safe_improvement": {
        "a choice by estimates": "test_a_rule_that_goes_by_estimates_is_found",
    },
    "oracles/test_fairness": {
        "likelihoods of a part of a class": (
            "test_a_process_that_is_unfair_is_found[likelihoods_of_blocks-blocks_cut_through_classes]"
        ),
        "powers that count once": "test_a_process_that_is_unfair_is_found[likelihood-powers_are_forgotten]",
        "outcomes that count for another": (
            "test_a_process_that_is_unfair_is_found[bets-outcomes_are_counted_for_each_other]"
        ),
        "equal outcomes in drifts": "test_a_process_that_is_unfair_is_found[drifts-equal_outcomes_are_merged_once]",
        "equal outcomes in half-spaces": (
            "test_a_process_that_is_unfair_is_found[drift_half_spaces-equal_outcomes_are_merged_once]"
        ),
        "one of a row left out": "test_a_process_that_is_unfair_is_found[rows-one_outcome_is_not_predicted]",
        "one of a class left out": "test_a_process_that_is_unfair_is_found[classes-one_outcome_is_not_predicted]",
        "shares tried by all visits": "test_a_process_that_is_unfair_is_found[fixed_numbers-every_visit_tries_a_share]",
        "successes of another event": "test_a_process_that_is_unfair_is_found[strips-successes_of_another_event]",
        "bets that a misfit does not charge": (
            "test_a_process_that_is_unfair_is_found[tolerant_bets-rows_that_are_off_cost_nothing]"
        ),
    },
    "oracles/test_misfit_points": {
        "natures without the tolerance": "test_natures_without_the_tolerance_are_caught",
        "residuals without the range of values": "test_residuals_without_the_range_of_values_are_caught",
        "residuals with half of the range": "test_residuals_with_half_of_the_range_are_caught",
        "a remainder without the tolerance": "test_a_remainder_against_natures_without_the_tolerance_is_caught",
    },
    "oracles/test_tables": {
        "a plan that has seen all data": (
            "test_a_planted_look_ahead_is_found[the_plan_has_seen_all_data-two rows-kinds0]"
        ),
        "weights that have seen their own batch": (
            "test_a_planted_look_ahead_is_found[weights_have_seen_their_own_batch-two rows-kinds1]"
        ),
        "a mixture over tied rows": (
            "test_a_planted_look_ahead_is_found[tied_rows_bet_as_if_they_were_two-tied rows-kinds3]"
        ),
        "a stage that knows to be the last": "test_a_stage_that_knows_to_be_the_last_is_found",
        "futures of two policies that differ": "test_a_planted_merger_is_found[unequal_futures_are_one]",
        "rows of two policies that differ": "test_a_planted_merger_is_found[rows_of_one_state_are_one]",
        "a difference that is a sum": "test_a_planted_merger_is_found[the_sign_is_lost]",
    },
    "unit/test_sums_of_days": {
        "a moment before many data": "test_a_moment_before_many_data_is_found",
    },
    "unit/test_table_differences": {
        "two policies that are one outside of the table": "test_mergers_outside_of_the_table_are_found",
    },
    "oracles/test_candidates": {
        "a candidate chosen by all data": "test_a_candidate_that_is_chosen_by_all_data_is_found",
    },
    "oracles/test_table_points": {
        "a share that counts twice": "test_a_planted_error_is_found[a_share_counts_twice]",
        "a mismatch left out": "test_a_planted_error_is_found[what_the_direction_misses_is_left_out]",
        "curvature left out": "test_a_planted_error_is_found[curvature_is_left_out]",
        "means left out of the curvature": "test_a_planted_error_is_found[means_are_left_out_of_the_curvature]",
        "variance of the reference": "test_a_planted_error_is_found[variance_is_that_of_the_reference]",
        "rows by the reference alone": ("test_a_planted_error_is_found[rows_bet_as_if_frequencies_were_the_reference]"),
        "a norm without far rows": "test_a_planted_error_is_found[rows_outside_of_the_core_are_left_out_of_the_norm]",
        "a norm without the ball": "test_a_planted_error_is_found[the_ball_is_left_out_of_the_norm]",
    },
    "oracles/test_product_sets": {"a smaller set": "test_a_region_of_a_smaller_set_loses_points"},
    "oracles/test_rectangular": {"a region that is too small": "test_a_region_that_is_too_small_is_noticed"},
    "oracles/test_region_exact": {
        "rounding to the nearest": "test_the_plain_minimum_over_vertices_is_above_the_exact_optimum_time_and_again",
    },
    "oracles/test_returned_policy": {
        "rows of another proof": "test_bounds_with_the_rows_of_another_proof_are_found_out",
    },
    "oracles/test_solver_brute_force": {"plain value iteration": "test_plain_value_iteration_fails_this_test"},
    "statistical/test_model_choice": {
        "models that have the whole error each": (
            "test_without_a_division_of_the_error_the_best_looking_model_misses_more_often"
        ),
    },
    "statistical/test_opponent": {
        "looks that are no planned ends": "test_a_mutant_is_found_out[every_look_is_a_planned_end-one coin, added to]",
        "horizons without weights": "test_a_mutant_is_found_out[horizons_have_no_weights-one coin]",
        "such horizons of data added to": "test_a_mutant_is_found_out[horizons_have_no_weights-one coin, added to]",
        "moments that depend on the end": "test_a_mutant_is_found_out[moments_depend_on_the_end-one coin]",
        "ten times the share": "test_a_mutant_is_found_out[half_spaces_have_ten_times_their_share-one coin]",
        "bets placed by all data": "test_a_mutant_is_found_out[bets_are_placed_by_all_data-many coins]",
        "equal outcomes of one cell": "test_a_mutant_is_found_out[equal_outcomes_are_merged_once-one cell]",
        "counts added twice": "test_a_mutant_is_found_out[counts_are_added_twice-repeated]",
    },
    "statistical/test_memory_coverage": {
        "data that count once for each memory": "test_data_that_count_once_for_each_memory_are_found",
    },
    "statistical/test_set_coverage": {
        "ten times the error": "test_ten_times_the_error_is_found",
        "bets from the main data": "test_bets_from_the_main_data_are_found",
        "a prior from the main data": "test_a_prior_from_the_main_data_is_found",
        "outcomes never seen, forgotten": "test_evidence_that_forgets_outcomes_never_seen_is_found",
        "pilots that depend on the end": "test_pilots_that_depend_on_an_end_which_was_chosen_are_found",
    },
    "statistical/test_model_fit_size": {
        "an error not divided between drifts": "test_an_error_that_is_not_divided_between_drifts_is_found",
        "ten times the error": "test_ten_times_the_error_is_found",
        "drifts in hindsight": "test_drifts_in_the_direction_that_the_data_have_taken_are_found",
        "an error not divided between rows": "test_an_error_that_is_not_divided_between_rows_is_found",
        "the largest likelihood for a mean": "test_the_largest_likelihood_in_place_of_a_mean_is_found",
        "p-values of undivided rows": "test_p_values_of_rows_that_each_have_the_whole_error_are_found_to_be_too_small",
        "an error not divided by objectives": "test_three_objectives_at_the_whole_error_each_are_found",
    },
    "statistical/test_joint_objectives": {
        "an error not divided by objectives": "test_an_error_that_is_not_divided_among_objectives_is_found",
    },
    "statistical/test_misfit": {
        "half-spaces that are not moved": "test_half_spaces_that_are_not_moved_are_caught",
        "intervals that are not widened": "test_intervals_that_are_not_widened_are_caught",
    },
    "statistical/test_likelihood_coverage": {
        "outcomes never seen, forgotten": "test_evidence_that_forgets_outcomes_never_seen_misses_too_often",
    },
    "statistical/test_binomial_coverage": {
        "intervals for a fixed end": "test_other_intervals_miss_at_some_time_more_often",
    },
    "statistical/test_ellipsoid_coverage": {
        "visits that count twice": "test_two_coins_that_count_twice_miss_too_often",
        "published constants": "test_with_the_published_constants_it_misses_too_often",
    },
    "statistical/test_online_coverage": {"the published construction": "test_the_published_construction_fails"},
    "statistical/test_simulation_frequencies": {
        "another point": "test_a_wrong_point_is_detected",
        "a last successor too likely": "test_a_last_successor_that_is_a_little_too_likely_is_detected",
        "a first choice too likely": "test_a_first_choice_that_is_a_little_too_likely_is_detected",
        "one row": "test_one_wrong_row_is_detected",
    },
    "statistical/test_theorem_1": {
        "intervals for a fixed end": "test_clopper_pearson_fails_against_an_opponent_who_stops",
        "complements counted twice": "test_counting_complements_twice_fails",
        "ten times the error": "test_ten_times_the_error_fails",
    },
    "statistical/test_audit_size": {"a biased bet": "test_a_biased_bet_is_caught"},
    "statistical/test_table_coverage": {
        "bets that end too early": "test_bets_that_are_stopped_before_they_won_are_found_out",
    },
    "statistical/test_wrong_models": {
        "a test of the model left out": "test_without_the_test_of_the_model_tight_brackets_miss_in_silence",
    },
    "unit/test_bets": {
        "throws that count twice": "test_a_coin_that_counts_every_throw_more_than_once_is_missed_too_often",
        "rounding to the nearest": "test_without_the_step_outward_half_spaces_would_be_too_narrow",
    },
    "unit/test_drift": {"throws that count twice": "test_throws_that_count_twice_contradict_the_truth_too_often"},
    "unit/test_evidence": {
        "outcomes never seen, forgotten": "test_without_the_check_of_outcomes_never_seen_evidence_is_too_large",
    },
    "unit/test_observations": {
        "visits that count for more": "test_a_visit_that_counts_for_a_tenth_more_breaks_the_bound",
    },
    "unit/test_policy_rules": {
        "a comparison that is off by one": "test_a_planted_comparison_that_is_off_by_one_is_found",
        "code that says something else": "test_planted_code_that_says_something_else_is_found",
    },
    "unit/test_prepared": {"shared preparations": "test_a_mutant_that_shares_where_it_must_not_is_caught"},
    "unit/test_readers": {
        "no branch of probability zero": "test_a_wrong_idea_of_what_is_zero_is_found[prism-nothing_is_zero]",
        "branches of probability zero only": "test_a_wrong_idea_of_what_is_zero_is_found[prism-everything_is_zero]",
    },
    "unit/test_tolerant": {
        "intervals that are not widened": "test_intervals_that_are_not_widened_are_caught",
        "a half-space that is not moved": (
            "test_an_opponent_who_moves_the_coin_wins_bets_no_more_often_than_the_error[False]"
        ),
    },
    "studies/test_performance_history": {"a slow-down": "test_the_command_fails_on_a_real_slow_down_that_is_planted"},
    "unit/test_pictures": {"a text outside of a picture": "test_a_planted_text_outside_is_found"},
    "unit/test_error_budget": {
        "an error divided elsewhere": "test_a_planted_division_is_found",
        "a share written elsewhere": "test_a_planted_share_is_found",
    },
    "unit/test_report": {"faults of a page": "test_the_browser_finds_planted_faults"},
    "unit/test_site": {"dead links": "test_dead_links_are_found"},
    "test_layers": {
        "an import of a later stage": "test_a_planted_violation_is_found",
        "a circle of imports": "test_a_planted_circle_is_found",
        "a circle of relative imports": "test_a_planted_circle_of_relative_imports_is_found",
    },
}
FOUND = [(f"tests/{file}.py", test) for file, tests in MUTANTS.items() for test in tests.values()]
SAYS_SO = re.compile("mutant|planted|caught|found_out|negative control|check can fail", re.IGNORECASE)
OTHERS = {  # say so, and plant no error of the package
    "test_every_game_finds_a_mutant",
    "test_every_process_has_a_mutant",
    "test_plain_value_iteration_passes_this_test_on_a_fast_chain",
    "test_the_bound_is_not_positive_where_tests_have_a_point_in_common",
    "test_a_planted_drift_contradicts_all_points_on_its_side_and_only_there",
}


@cache
def functions(file):
    """Return name and docstring of each test of a file."""
    tree = ast.parse((TESTS.parent / file).read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return {node.name: ast.get_docstring(node) or "" for node in tests}


def test_every_test_of_the_table_exists():
    assert [(file, test) for file, test in FOUND if test.partition("[")[0] not in functions(file)] == []


def test_every_test_that_plants_an_error_is_in_the_table():
    listed = {test.partition("[")[0] for _, test in FOUND} | OTHERS
    files = [path.relative_to(TESTS.parent).as_posix() for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    missing = {
        f"{file}::{name}"
        for file in files
        for name, text in functions(file).items()
        if SAYS_SO.search(name + text.partition(".")[0]) and name not in listed
    }
    assert missing == set()


@pytest.mark.slow
def test_every_test_of_the_table_is_run_by_day(request):
    """Of the files that this run has collected; with their parameters, and without a condition to leave them out."""
    options = request.config.option
    if options.keyword or options.markexpr or any("::" in argument for argument in request.config.args):
        pytest.skip("tests were left out")
    may_skip = ("test_report.py",)  # where there is no browser
    items = request.session.items
    run = {item.nodeid for item in items if item.path.name in may_skip or not item.get_closest_marker("skipif")}
    files = {nodeid.partition("::")[0] for nodeid in run}
    names = run | {nodeid.partition("[")[0] for nodeid in run}
    asked = {f"{file}::{test}" for file, test in FOUND if file in files}
    assert asked - names == set()
